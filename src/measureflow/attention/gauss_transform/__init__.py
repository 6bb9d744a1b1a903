r"""Softmax attention for very many points in few dimensions, at a cost that grows like their number.

With :math:`u = \sqrt{\gamma/2}\,Qx` and :math:`v = \sqrt{\gamma/2}\,Ky` the numerator and the denominator of
softmax attention are Gauss transforms,

.. math:: e^{\gamma\, Qx \cdot Ky} = e^{|u|^2}\, e^{-|u - v|^2}\, e^{|v|^2},

and so they are for the L2 score with :math:`u = \sqrt{\gamma}\,Qx` and no :math:`e^{|v|^2}`. The plane is cut into
boxes of side h; inside each, the kernel is replaced by its interpolant of p Chebyshev nodes an axis. Points then
exchange values with the nodes of their own box only, and nodes with nodes by one matrix for each axis, because the
Gaussian is a product over axes.
"""

from measureflow.attention.gauss_transform.fast import Fast, Report

__all__ = ["Fast", "Report"]
