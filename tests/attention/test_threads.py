"""Inside `one_thread` no operation is shared among threads, and outside nothing has changed."""

import threading

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from measureflow.attention.fused import PIECE, softmax_means
from measureflow.attention.threads import one_thread, side_by_side


def numbers() -> tuple[int, set[int]]:
    """Threads of torch and of the BLAS libraries, as the calling thread sees them."""
    return torch.get_num_threads(), {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


HELD = (1, {1})


@pytest.fixture(autouse=True)
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    with threadpool_limits(3, user_api="blas"):
        yield
    torch.set_num_threads(before)


def test_everything_is_held_inside_and_set_free_outside():
    before = numbers()
    assert before[0] == 3
    with one_thread():
        assert numbers() == HELD
        with one_thread():
            assert numbers() == HELD
        assert numbers() == HELD
    assert numbers() == before


def test_everything_is_set_free_after_an_error():
    before = numbers()
    with pytest.raises(ZeroDivisionError), one_thread():
        side_by_side(lambda x: 1 / x, [1, 0, 2])
    assert numbers() == before


def test_threads_side_by_side_are_held_too_even_after_a_block_of_their_own():
    def look(_):
        with one_thread():
            inside = numbers(), side_by_side(abs, [-1, -2])
        return threading.get_ident(), inside, numbers()

    with one_thread():
        seen = side_by_side(look, range(20))
    assert all(found[1:] == ((HELD, [1, 2]), HELD) for found in seen)
    assert threading.get_ident() not in {found[0] for found in seen}


def test_one_who_leaves_early_sets_nothing_free_for_the_others():
    before, entered, may_leave, seen = numbers(), threading.Event(), threading.Event(), []

    def late():
        with one_thread():
            entered.set()
            may_leave.wait(10)
            seen.append(numbers())
        seen.append(numbers()[0])

    thread = threading.Thread(target=late)
    with one_thread():
        thread.start()
        assert entered.wait(10)
    assert torch.get_num_threads() == 3
    may_leave.set()
    thread.join(10)
    assert seen == [HELD, 3]  # a thread that began inside goes back to what the process had
    assert numbers() == before


def test_any_thread_may_hold_the_others_libraries():
    """A version of threadpoolctl lets the thread that set a number of BLAS threads alone set another."""
    seen = []

    def elsewhere():
        with one_thread():
            seen.append(numbers())
        seen.append(numbers()[1])

    before = numbers()
    threadpool_limits(3, user_api="blas")
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(10)
    assert seen == [HELD, before[1]]
    assert numbers() == before


def test_pieces_come_back_in_order():
    with one_thread():
        assert side_by_side(lambda x: x * x, range(50)) == [x * x for x in range(50)]
    assert side_by_side(lambda x: x * x, range(50)) == [x * x for x in range(50)]


@pytest.mark.parametrize("n", [1, PIECE, PIECE + 1, 3 * PIECE - 7])
def test_attention_in_pieces_is_attention(n):
    q, k, v = (torch.from_numpy(np.random.default_rng(seed).normal(size=(2, 3, n, 4))) for seed in range(3))
    logits = q @ k.mT
    with one_thread(), torch.no_grad():
        means, log_density = softmax_means(q, k, v)
    torch.testing.assert_close(means, torch.softmax(logits, -1) @ v, rtol=0, atol=1e-12)
    torch.testing.assert_close(log_density, torch.logsumexp(logits, -1), rtol=0, atol=1e-12)
