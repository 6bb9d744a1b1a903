"""The order of the examples: what most readers have first, what few need last."""

ORDER = ("customer_segments", "outliers", "peers", "pipeline", "streaming", "dask", "attention_flow", "finetune_lloyd")


class AsRead:
    """A sort key of sphinx-gallery, which makes it with the folder of the examples."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> int:
        """Where an example comes; a name that is not in the list is an error."""
        return ORDER.index(filename.removeprefix("plot_").removesuffix(".py"))
