"""Histograms of latencies as results hold them: HdrHistogram's V2 encoding, whole, so that they merge without loss."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Iterable, Iterator

if TYPE_CHECKING:
    import pandas

_COMPRESSED = 0x1C849304
_PLAIN = 0x1C849303
# The part of a cookie that says how wide words are, which V2 leaves to each count.
_WIDTH = 0xF0
_HEADER = struct.Struct(">iiiiqqd")


class Histogram:
    """Counts of values, of which three digits are known. Values of latencies are nanoseconds."""

    def __init__(self, counts: Counter[int] | None = None, digits: int = 3, unit: int = 1) -> None:
        self._digits = digits
        self._unit_magnitude = int(math.log2(unit))
        # A power of two that tells apart 10 to the power of the digits, twice over.
        self._half_magnitude = max(math.ceil(math.log2(2 * 10**digits)), 1) - 1
        self._counts: Counter[int] = Counter() if counts is None else counts

    @classmethod
    def decode(cls, text: str) -> Histogram:
        """Reads base64 of the V2 deflate encoding: a `histogram` of `result.json`, or of a line of `intervals.hlog`."""
        data = base64.b64decode(text)
        cookie, length = struct.unpack_from(">ii", data)
        if cookie & ~_WIDTH != _COMPRESSED:
            raise ValueError("not a histogram of HdrHistogram's V2 deflate encoding")
        plain = zlib.decompress(data[8 : 8 + length])
        cookie, payload, offset, digits, unit, _highest, _ratio = _HEADER.unpack_from(plain)
        if cookie & ~_WIDTH != _PLAIN or offset != 0:
            raise ValueError("not a histogram of HdrHistogram's V2 encoding, without an offset")
        counts: Counter[int] = Counter()
        index = 0
        for number in _zigzags(plain[_HEADER.size : _HEADER.size + payload]):
            if number < 0:
                index -= number
            else:
                if number:
                    counts[index] = number
                index += 1
        return cls(counts, digits, unit)

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """All of them in one: percentiles are never averaged."""
        whole: Histogram | None = None
        for one in histograms:
            whole = one if whole is None else whole + one
        return cls() if whole is None else whole

    def __add__(self, other: Histogram) -> Histogram:
        if (self._digits, self._unit_magnitude) != (other._digits, other._unit_magnitude):
            raise ValueError("histograms of other digits or units cannot be merged")
        return Histogram(self._counts + other._counts, self._digits, 1 << self._unit_magnitude)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Histogram) and (self._digits, self._counts) == (other._digits, other._counts)

    def __repr__(self) -> str:
        return f"<Histogram of {self.count} values up to {self.max}>"

    @property
    def count(self) -> int:
        """How many values were counted."""
        return sum(self._counts.values())

    @property
    def max(self) -> int:
        """The largest value, as far as it is known; 0 of none."""
        return self._range(max(self._counts))[1] if self._counts else 0

    @property
    def mean(self) -> float:
        """The mean; not a number of none."""
        total = sum((low + high + 1) // 2 * count for low, high, count in self.bins())
        return total / self.count if self._counts else math.nan

    def percentile(self, percent: float) -> int:
        """The value that this share of all does not exceed: at most 0.1 % too high. 0 of none."""
        # 99.9 is no binary number: without rounding, 99.9 % of 1,000 values were 999.0000000000001.
        wanted = max(math.ceil(round(percent * self.count / 100, 6)), 1)
        for _low, high, count in self.bins():
            wanted -= count
            if wanted <= 0:
                return high
        return 0

    def bins(self) -> Iterator[tuple[int, int, int]]:
        """Lowest and highest value, and count, of each bin that is not empty, in ascending order."""
        for index in sorted(self._counts):
            low, high = self._range(index)
            yield low, high, self._counts[index]

    def to_frame(self) -> pandas.DataFrame:
        """The bins as a data frame, with the share of all values up to each."""
        import pandas

        frame = pandas.DataFrame(list(self.bins()), columns=["low", "high", "count"])
        frame["share"] = frame["count"].cumsum() / max(self.count, 1)
        return frame

    def _range(self, index: int) -> tuple[int, int]:
        half = 1 << self._half_magnitude
        bucket = (index >> self._half_magnitude) - 1
        within = (index & (half - 1)) + half
        if bucket < 0:
            bucket, within = 0, within - half
        shift = bucket + self._unit_magnitude
        return within << shift, (within << shift) + (1 << shift) - 1


def _zigzags(data: bytes) -> Iterator[int]:
    """Numbers of 7 bits a byte, the ninth byte whole, the sign in the lowest bit."""
    at = 0
    while at < len(data):
        number = shift = 0
        for nth in range(9):
            byte = data[at]
            at += 1
            number |= (byte if nth == 8 else byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        yield (number >> 1) ^ -(number & 1)
