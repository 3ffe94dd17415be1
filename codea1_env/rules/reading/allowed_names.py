"""The names that a test may use besides the entry point and its own names.

The sandbox contains hostile code in any case. These lists serve other purposes. A test must have one meaning for the
solution and for a candidate, so it must not use the clock, random numbers or object identity. It must call the program
and not inspect it. It must not change what later tests in the same process mean, for example a module's settings.
So modules are listed name by name. No listed name turns a text into an attribute of that name or makes a class, since
either would defeat all other restrictions.
"""

from __future__ import annotations

import builtins
import re

_EXCEPTIONS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException) and not issubclass(value, Warning)
)

# `type` is missing because it makes classes; `inlining` checks each use of it.
_PLAIN_BUILTINS = """
    Ellipsis NotImplemented abs all any ascii bin bool bytearray bytes callable chr complex dict divmod enumerate filter
    float format frozenset hex int isinstance issubclass iter len list map max min next oct ord pow range repr reversed
    round set slice sorted str sum tuple zip
"""
_CLOCK_AND_CHANCE = "now today utcnow random default_rng samples empty empty_like"
_ATTRIBUTES_BY_NAME = "attrgetter methodcaller get_field update_wrapper wraps"
_WAYS_INTO_THE_INTERPRETER = """
    mro sys os io builtins importlib codecs contextlib copyreg ctypes ctypeslib inspect gc types weakref f2py testing
    f_back f_builtins f_code f_globals f_locals gi_code gi_frame cr_code cr_frame ag_code ag_frame tb_frame
"""
_LASTING_CHANGES = "register"
_NUMPY_FILES = "dump fromfile genfromtxt load loadtxt memmap open_memmap save savetxt savez savez_compressed tofile"

_STANDARD_LIBRARY = {
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "cmath": """acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf isnan log log10 nan nanj
        phase pi polar rect sin sinh sqrt tan tanh tau""",
    "collections": "ChainMap Counter OrderedDict UserDict UserList UserString abc defaultdict deque namedtuple",
    "collections.abc": """Callable Collection Container Generator Hashable ItemsView Iterable Iterator KeysView Mapping
        MappingView MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized ValuesView""",
    "copy": "copy deepcopy",
    "datetime": "MAXYEAR MINYEAR UTC date datetime time timedelta timezone",
    "decimal": """Context Decimal DecimalException DivisionByZero InvalidOperation ROUND_05UP ROUND_CEILING ROUND_DOWN
        ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP""",
    "fractions": "Fraction",
    "functools": "cache cmp_to_key lru_cache partial reduce",
    "heapq": "heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest",
    "itertools": """accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
        filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest""",
    "json": "JSONDecodeError dumps loads",
    "math": """acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2
        expm1 fabs factorial floor fma fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp
        lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt sumprod tan tanh
        tau trunc ulp""",
    "operator": """abs add and_ concat contains countOf eq floordiv ge getitem gt index indexOf inv invert is_ is_not
        itemgetter le lshift lt matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor""",
    "pytest": "approx",
    "re": """A ASCII DOTALL I IGNORECASE M MULTILINE Match Pattern S U UNICODE VERBOSE X compile error escape findall
        finditer fullmatch match search split sub subn""",
    "statistics": """NormalDist StatisticsError correlation covariance fmean geometric_mean harmonic_mean
        linear_regression mean median median_grouped median_high median_low mode multimode pstdev pvariance quantiles
        stdev variance""",
    "string": """ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable punctuation
        whitespace""",
    "textwrap": "dedent fill indent shorten wrap",
    "typing": """AbstractSet Any AnyStr Callable Collection Container Counter DefaultDict Deque Dict FrozenSet Generator
        Hashable Iterable Iterator List Literal Mapping MutableMapping MutableSequence MutableSet Optional OrderedDict
        Sequence Set Sized Text Tuple Union cast""",
}
_NUMPY = {
    "numpy": """abs absolute add all allclose amax amin angle any append apply_along_axis arange arccos arccosh arcsin
        arcsinh arctan arctan2 arctanh argmax argmin argpartition argsort argwhere around array array_equal array_equiv
        array_repr array_split array_str asarray astype atleast_1d atleast_2d atleast_3d average base_repr binary_repr
        bincount bitwise_and bitwise_count bitwise_not bitwise_or bitwise_xor block bool bool_ broadcast_to byte bytes_
        can_cast cbrt ceil choose clip column_stack compress concat concatenate conj conjugate convolve copy copysign
        corrcoef correlate cos cosh count_nonzero cov cross cumprod cumsum deg2rad degrees delete diag diag_indices
        diagflat diagonal diff digitize divide divmod dot double dsplit dstack dtype e ediff1d einsum equal euler_gamma
        exp exp2 expand_dims expm1 extract eye fabs fft finfo fix flatnonzero flip fliplr flipud float16 float32 float64
        float_power floating floor floor_divide fmax fmin fmod frexp full full_like gcd generic geomspace gradient
        greater greater_equal heaviside histogram hsplit hstack hypot identity iinfo imag indices inexact inf inner
        insert int16 int32 int64 int8 int_ intc integer interp intersect1d intp invert isclose iscomplex iscomplexobj
        isfinite isin isinf isnan isneginf isposinf isreal isrealobj isscalar issubdtype kron lcm ldexp left_shift less
        less_equal lexsort linalg linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor
        logspace matmul max maximum mean median meshgrid min minimum mod modf moveaxis multiply nan nan_to_num nanargmax
        nanargmin nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar
        ndarray ndim negative newaxis nonzero not_equal number object_ ones ones_like outer pad partition percentile pi
        piecewise poly1d polyadd polyder polyfit polyint polymul polysub polyval positive pow power prod ptp quantile
        rad2deg radians ravel real reciprocal remainder repeat reshape resize right_shift rint roll roots rot90 round
        searchsorted select setdiff1d setxor1d shape sign signbit signedinteger sin sinc sinh size sort split sqrt
        square squeeze stack std str_ subtract sum swapaxes take tan tanh tensordot tile trace transpose trapezoid trapz
        tri tril trim_zeros triu true_divide trunc uint16 uint32 uint64 uint8 union1d unique unravel_index unwrap vander
        var vdot vectorize vsplit vstack where zeros zeros_like""",
    "numpy.fft": "fft fft2 fftfreq fftn fftshift ifft ifft2 ifftn ifftshift irfft rfft rfftfreq",
    "numpy.linalg": """LinAlgError cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_power matrix_rank
        multi_dot norm pinv qr slogdet solve svd""",
}
# An attribute or an item of a replacement field. An item may hold anything, for example a further attribute.
_FIELD_OF_FIELD = re.compile(r"\{[^{}:!]*[.\[]")

SAFE_BUILTINS = _EXCEPTIONS | frozenset(_PLAIN_BUILTINS.split())
"""Built-in names that a test may use. It excludes input and output, evaluation of text, namespaces, access to
attributes by name, and everything that shows an object's identity."""

MODULES = {name: frozenset(text.split()) for name, text in (_STANDARD_LIBRARY | _NUMPY).items()}
"""Dotted names of the modules that a test may import, each with the names that a test may use from it. None of these
changes a setting, and none takes the name of an attribute as text."""

COMPARED_ONLY = frozenset({"numpy.ndarray"})
"""Dotted names of classes that a test may compare and give to `isinstance`, but not call. An array that such a call
makes holds uninitialised memory."""

FORBIDDEN_ATTRIBUTES = frozenset(
    (
        *_CLOCK_AND_CHANCE.split(),
        *_ATTRIBUTES_BY_NAME.split(),
        *_WAYS_INTO_THE_INTERPRETER.split(),
        *_LASTING_CHANGES.split(),
        *_NUMPY_FILES.split(),
    )
)
"""Attributes that a test may not use on any object. Attributes that begin with an underscore are forbidden too."""


DRAWN = "even a seeded draw depends on all draws before it, which reading does not run: write the input out"
"""Why a test with random numbers is not read."""


def is_importable(module: str) -> bool:
    """Whether a test may import the dotted `module`."""
    return module in MODULES


def may_be_imported_from(module: str, name: str) -> bool:
    """Whether a test may use `name` from the dotted `module`, as an attribute or by `from ... import`."""
    return name in MODULES.get(module, ())


def may_be_attribute(name: str) -> bool:
    """Whether a test may use the attribute `name` of an object that is not a module."""
    return not name.startswith("_") and name not in FORBIDDEN_ATTRIBUTES


def holds_fields(template: str) -> bool:
    """Whether `template.format(...)` could read attributes or items of its arguments."""
    return _FIELD_OF_FIELD.search(template) is not None
