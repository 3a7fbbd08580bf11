"""Docstrings: sections, references and plain sentences."""

from __future__ import annotations

from lightdxml.data.docstrings import prose, references, split_sections

DOCSTRING = r"""
    scale(x, /, by=1, *,
          out=None) -> array

    Scale an array, as `~numpy.multiply` and **nothing** else would [1]_.

    For :math:`x > \alpha` and :math:`\frac{a}{b}`, see :ref:`the guide <scaling-guide>` and
    :func:`~numpy.dot`. See [2]_ for more. Read more in the :ref:`User Guide <scale>`.

    .. math::

        \sum_i x_i

    .. versionadded:: 1.2
       Really.

    .. note::
        It is `fast <https://example.org/fast>`__.

    .. deprecated:: 1.3
        Use another.

    Parameters
    ----------
    x : array_like, shape (n,)
        What to scale:

        - as a whole

          >>> scale(x)
          1
    by : int
        By how much, with::

            code = True

    Returns
    -------
    array

    See Also
    --------
    numpy.add, numpy.subtract : Add or subtract,
        or not.
    `multiply`
    rescale: Without a blank.
    :ref:`not-an-object`
    words of a description
    first, second,
    third

    Notes
    -----
    Works ``__in_place__``.

    =====  =====
    CPU    GPU
    =====  =====

    **Array API Standard Support**

    All of it.

    References
    ----------
    .. [1] A book.

    Examples
    --------
    >>> 1 + 1
    2
"""


def test_text_is_prose_without_markup_code_and_references() -> None:
    assert prose(split_sections(DOCSTRING)) == (
        "Scale an array, as numpy.multiply and nothing else would. For x > alpha and, see the guide and "
        "numpy.dot. It is fast. What to scale: as a whole By how much, with: Works __in_place__. CPU GPU"
    )


def test_references_are_names_without_descriptions() -> None:
    (lines,) = (lines for title, lines in split_sections(DOCSTRING) if title == "see also")
    assert list(references(lines)) == [
        *("numpy.add", "numpy.subtract", "multiply", "rescale"),
        *("first", "second", "third"),
    ]


def test_reference_may_have_its_description_below() -> None:
    assert list(references([":func:`numpy.polymul`", "    multiplies, polynomials", "t", "    Student"])) == [
        "numpy.polymul",
        "t",
    ]


def test_section_title_needs_its_underline() -> None:
    assert split_sections("See Also the rest\n\nNotes\n=====\nx") == [
        ("", ["See Also the rest", ""]),
        ("notes", ["x"]),
    ]
