"""Special functions of vectors: error functions and their inverses, gamma functions, Bessel functions.

Each is a polynomial or two in a variable that brings the range near to -1 ... 1, so that the terms do not cancel each
other; lanes choose between the ranges. The coefficients are minimax fits, constant term first. What is heavy in float32
is computed in float64 and rounded once.
"""

from __future__ import annotations

import math

from pullback.kernels.jit.language.code import Code, Value, element_of
from pullback.kernels.jit.language.elementary import (
    FUNCTIONS,
    INF,
    NAN,
    copysign,
    double_precision,
    exp,
    exp_times,
    log,
    log1p,
    near_erf,
    polynomial,
)

# ------------------------------------------------------------------ error functions

SCALED_TAIL = {
    "float": (0.6384891867637634, -0.0463818795979023, -0.08301518857479095, 0.08202473074197769,
              -0.027110133320093155, -0.004009481519460678, 0.004362303763628006, 0.0006087052752263844,
              -0.0007320354343391955, -0.00017896022472996265, 0.00011078577517764643, 3.168472903780639e-05,
              -1.012799475574866e-05),
    "double": (0.6187563154189137, -0.07012029929277348, 0.0017927077427322146, 0.0411383692450726,
               -0.05440196507087443, 0.04615216058018874, -0.029346699294818385, 0.014181138709478203,
               -0.004873289779014638, 0.0008778129264476477, 0.0001468568327956724, -0.00014507704027042086,
               2.5824549446341203e-05, 1.1192119577541115e-05, -5.722073118850262e-06, -4.867799483683875e-07,
               8.75818824424531e-07, -2.8609115301612043e-08, -1.2933425358077942e-07, 1.1631754354429562e-08,
               1.9337667121111177e-08, -1.872105040481009e-09, -2.5869951070056548e-09, 1.5557166904899627e-10,
               2.1257357223981948e-10),
}  # fmt: skip
"""(x + 1/2) * exp(x**2) * erfc(x) from 0 to infinity, in (x - MIDDLE) / (x + MIDDLE)."""
MIDDLE = {"float": 2.0, "double": 3.75}


def scaled_tail(code: Code, x: Value) -> Value:
    """exp(x**2) * erfc(x) for x >= 0."""
    element = element_of(x.type)
    near = code.select(x > 1e18, 1e18, x)
    t = (near - MIDDLE[element]) / (near + MIDDLE[element])
    return polynomial(code, t, SCALED_TAIL[element]) / (x + 0.5)


def exp_of_square(code: Code, x: Value, factor: Value, half: bool = False) -> Value:
    """factor * exp(-x**2), or of half of it: what the square loses is the first digit of a small result."""
    limit = 12.0 if element_of(x.type) == "float" else 40.0  # where the result is zero
    x = code.select(x > limit, limit, x)
    square = x.binary(x, ("fmul", ""))
    lost = code.fma(x, x, -square)
    if half:
        square, lost = square * 0.5, lost * 0.5
    return exp_times(code, -square, code.fma(factor, -lost, factor))


def erfc(code: Code, x: Value) -> Value:
    """1 - erf(x), which is small where x is large."""
    size = code.abs(x)
    tail = exp_of_square(code, size, scaled_tail(code, size))
    near = 1.0 - near_erf(code, x)
    return code.select(size < 0.5, near, code.select(x < 0.0, 2.0 - tail, tail))


@double_precision
def erfcx(code: Code, x: Value) -> Value:
    """exp(x**2) * erfc(x), which below zero is nearly twice the first factor."""
    size = code.abs(x)
    tail = scaled_tail(code, size)
    square = size.binary(size, ("fmul", ""))
    lost = code.fma(size, size, -square)
    power = exp(code, square)
    power = code.select(power < INF, code.fma(power, lost, power), power)
    return code.select(x < 0.0, code.fma(power, 2.0, -tail), tail)


@double_precision
def log_ndtr(code: Code, x: Value) -> Value:
    """The logarithm of the normal distribution function: of its tail below -1, of one minus the other tail above."""
    size = code.abs(x)
    tail = scaled_tail(code, size * math.sqrt(0.5))
    left = code.fma(x * -0.5, x, log(code, tail * 0.5))
    small = exp_of_square(code, size, tail * 0.5, half=True)
    right = log1p(code, -code.select(x < 0.0, 1.0 - small, small))
    return code.select(x < -1.0, left, right)


NEAR = {
    "float": (1.0048227310180664, 0.24176247417926788, 0.007914046756923199, -0.0024716188199818134,
              -8.449897904938553e-06, 4.6670080337207764e-05, -7.066312264214503e-07, -1.497254515925306e-06,
              2.573812878381432e-07, -1.8082875641312057e-08, 4.671932285482683e-10),
    "double": (1.00482268397713, 0.24176249324891655, 0.007914108355434126, -0.0024718596040285055,
               -8.441967909540624e-06, 4.727604711873796e-05, -1.5434221232549542e-06, -9.56160890407705e-07,
               6.294351641767332e-08, 1.9457993027509647e-08, -1.962848178444127e-09, -3.898467074749928e-10,
               5.4215481790953995e-11, 8.965282812395759e-12, -2.44515062928649e-12, 3.486557522427078e-13,
               -1.5187715456870883e-13, 5.945014402792761e-14, -1.4018863518910996e-14, 2.1705127137643107e-15,
               -2.3202590656952214e-16, 1.7220973043825972e-17, -8.562059064678074e-19, 2.583119377215931e-20,
               -3.5932028927020693e-22),
}  # fmt: skip
"""erfinv(x) / x in w - 1/2, for w = -log(1 - x**2) up to LIMIT."""
LIMIT = {"float": 5.0, "double": 6.25}
FAR = {
    "float": (0.9680886268615723, 0.030593736097216606, -0.011006743647158146, 0.0014667257200926542,
              0.0006887821946293116, -0.0007162574911490083, 0.0003907423233613372, -0.00018831502529792488,
              0.00013019658217672259, -1.702165354799945e-05, -0.00013138125359546393, 9.039398719323799e-05,
              2.458983908582013e-05, -2.6140744012081996e-05),
    "double": (0.9853604520253297, 0.023561677183858685, -0.016917970946148313, 0.008435748948623001,
               -0.0034409250057081384, 0.0009787221954029037, 2.8292351322254528e-05, -0.0003371817461538894,
               0.0003551043806853251, -0.00027988336596642977, 0.00019354646796326285, -0.0001236304045784806,
               7.470891618630597e-05, -4.501657941375295e-05, 2.7107514122495593e-05, -8.98976362626826e-07,
               -1.576568805698047e-05, -8.071050291588041e-05, 0.0001499962629445306, 0.00035493718628249577,
               -0.0007308865929982273, -0.001238550983213116, 0.0027930892528444653, 0.00321327482454342,
               -0.008291488542634506, -0.006005538117900394, 0.019081795362135008, 0.007314818479277262,
               -0.033706459031642544, -0.0034221703422919795, 0.04428534466369632, -0.005151024386112328,
               -0.04243832691306218, 0.011887670668992184, 0.02927207212075915, -0.01185830591988017,
               -0.014212389338149778, 0.007154979429623695, 0.004631817332593729, -0.002701345683359512,
               -0.0009133541344260648, 0.0005933678564488649, 8.264439603293079e-05, -5.835767397272916e-05),
}  # fmt: skip
"""erfinv(x) / sqrt(w) beyond, down to the logarithm of the least number, in a / (sqrt(w) + b) + c."""
TURN = {
    "float": (-26.397217304256852, 4.78, 2.762394747159167),
    "double": (-30.857523870465933, 8.26, 1.8677996162143062),
}
"""Its a, b and c."""


def inverse(code: Code, x: Value, rest: Value) -> Value:
    """erfinv(x), given 1 - x**2."""
    element = element_of(x.type)
    w, limit = -log(code, rest), LIMIT[element]
    out = code.variable(x * polynomial(code, w - 0.5, NEAR[element]))
    far = w > limit
    with code.when(code.any(far)):
        a, b, c = TURN[element]
        root = code.sqrt(w)
        beyond = root * polynomial(code, a / (root + b) + c, FAR[element])
        beyond = code.select(w < INF, beyond, w)
        out.set(code.select(far, copysign(code, beyond, x), out.get()))
    return out.get()


def erfinv(code: Code, x: Value) -> Value:
    """The inverse of erf."""
    return code.select(code.abs(x) > 1.0, NAN, inverse(code, x, (1.0 - x) * (1.0 + x)))


@double_precision
def ndtri(code: Code, x: Value) -> Value:
    """The inverse of the normal distribution function."""
    out = inverse(code, code.fma(x, 2.0, -1.0), (x * 4.0) * (1.0 - x)) * math.sqrt(2.0)
    return code.select((x < 0.0) | (x > 1.0), NAN, out)


# ------------------------------------------------------------------ gamma functions

LOG_GAMMA = (0.38941867676694597, -0.20683128073200127, 0.03693360023524257, -0.021349362208206324,
             0.007123389777215116, -0.003992475340871945, 0.0015869887147870602, -0.000875880033447933,
             0.0003776394165962844, -0.00020685284451812887, 9.35007011936991e-05, -5.101855922423215e-05,
             2.378910909377576e-05, -1.295757505924246e-05, 6.1781295224753485e-06, -3.347825703586894e-06,
             1.6186604951753128e-06, -9.140708060955323e-07, 4.566830773857823e-07, -1.8095835090444158e-07,
             7.763053836611042e-08, -1.3816299883839142e-07, 8.220729389410846e-08, 5.3984390842291344e-08,
             -3.7071347391252065e-08, -5.0882198846208297e-08, 3.070408562212945e-08, 1.731285069483735e-08,
             -1.0275271886656776e-08, -4.12990910217599e-09, 2.3066987876224543e-09)  # fmt: skip
"""log(gamma(x)) / ((x - 1) * (x - 2)) from 0.7 to 8.05, in -8.704... / (x + 2.37) + 1.835..."""
LOG_GAMMA_FAR = (0.08333333333333333, -0.0027777777777776747, 0.0007936507935117282, -0.0005952380234291254,
                 0.0008417325268022405, -0.001914965912162907, 0.0062081367662297935,
                 -0.020855820837463117)  # fmt: skip
"""What Stirling's formula leaves beyond 8, times x, in 1 / x**2."""
SINE = (1.0, -1.6449340668482264, 0.8117424252833536, -0.19075182412208255, 0.026147847817611935,
        -0.002346081034815316, 0.0001484287872033628, -6.975840829271595e-06, 2.5300985563134005e-07,
        -7.0931258816238045e-09)  # fmt: skip
"""sin(pi * x) / (pi * x) in x**2 up to one half."""


def sine(code: Code, x: Value) -> Value:
    """sin(pi * x) / pi for x up to one half."""
    return x * polynomial(code, x * x, SINE)


def beyond_whole(code: Code, x: Value) -> Value:
    """How far x is from the nearest whole number."""
    return x - code.intrinsic("rint", x)


@double_precision
def gammaln(code: Code, x: Value) -> Value:
    """log(abs(gamma(x))): a polynomial with the roots taken out, Stirling's formula beyond, reflected below zero."""
    y = code.abs(x)
    small = y < 0.7
    near = code.select(small, y + 1.0, y)
    near = code.select(near > 8.0, 8.0, near)
    t = -8.704598639455781 / (near + 2.37) + 1.835374149659864
    middle = (near - 1.0) * (near - 2.0) * polynomial(code, t, LOG_GAMMA)
    logarithm = log(code, y)
    inverse = 1.0 / y
    series = inverse * polynomial(code, inverse * inverse, LOG_GAMMA_FAR)
    far = code.fma(y - 0.5, logarithm - 1.0, series + (0.5 * math.log(2 * math.pi) - 0.5))
    above = code.select(small, middle - logarithm, code.select(y < 8.0, middle, far))
    out = code.variable(above + 0.0)  # of zeros the one without a sign
    negative = x < 0.0
    with code.when(code.any(negative)):
        distance = code.abs(sine(code, beyond_whole(code, x)))  # gamma(-y) * gamma(1 + y) = -1 / distance
        distance = distance * code.select(small, code.const(1.0, y.type), y)
        below = -log(code, distance) - code.select(small, middle, above)
        whole = code.compare("eq", distance, 0.0) | code.compare("eq", y, INF)
        out.set(code.select(negative, code.select(whole, INF, below), out.get()))
    return out.get()


DIGAMMA = (0.622448474636544, -0.39662208563783324, 0.12288576485454195, -0.058925108695635164,
           0.025788418087915828, -0.012518402351936067, 0.005813742838349209, -0.0028175562503404573,
           0.0013305411705408809, -0.0006427595091726513, 0.00030537356944088974, -0.0001471554863065179,
           7.010764531548844e-05, -3.372853023167919e-05, 1.6087024988778693e-05, -7.72929966005895e-06,
           3.708422474307993e-06, -1.7842672385312658e-06, 8.166732589984638e-07, -3.863799332383511e-07,
           2.392697998381895e-07, -1.2118209845153631e-07, -1.078757687839729e-09, 5.567216671842499e-09,
           4.1826324966820404e-08, -2.2683482353477146e-08, -1.1323493386859017e-08, 6.237296914012447e-09,
           3.5861564868349636e-09, -1.830649996822282e-09)  # fmt: skip
"""digamma(x) / (x - ROOT) from 1 to 8.05, in -11.863... / (x + 2.84) + 2.089..."""
DIGAMMA_FAR = (0.08333333333333333, -0.008333333333331664, 0.003968253965999701, -0.004166665501516725,
               0.007575459920369176, -0.02105106090804774, 0.08002337465397756, -0.299425370626735)  # fmt: skip
"""(log(x) - 1 / (2 * x) - digamma(x)) * x**2 beyond 8, in 1 / x**2."""
ROOT = (1.4616321449683622, 9.549995429965697e-17)
"""Where digamma is zero, in two parts."""


@double_precision
def psi(code: Code, x: Value) -> Value:
    """The derivative of gammaln: a polynomial without its root, the asymptotic series beyond, reflected below."""
    negative = x < 0.0
    y = code.select(negative, 1.0 - x, x)
    small = y < 1.0
    inverse = 1.0 / y
    near = code.select(small, y + 1.0, y)
    near = code.select(near > 8.0, 8.0, near)
    t = -11.863148936170212 / (near + 2.84) + 2.0893617021276594
    middle = ((near - ROOT[0]) - ROOT[1]) * polynomial(code, t, DIGAMMA)
    square = inverse * inverse
    far = log(code, y) - code.fma(square, polynomial(code, square, DIGAMMA_FAR), 0.5 * inverse)
    above = code.select(small, middle - inverse, code.select(y < 8.0, middle, far))
    out = code.variable(above)
    with code.when(code.any(negative)):
        rest = beyond_whole(code, x)
        cotangent = math.pi * (sine(code, 0.5 - code.abs(rest)) / sine(code, rest))
        below = code.select(code.compare("eq", rest, 0.0), NAN, above - cotangent)
        out.set(code.select(negative, below, above))
    return out.get()


# ------------------------------------------------------------------ Bessel functions

I0 = {
    "float": (1.0, 0.25, 0.015624999068677425, 0.00043402801384218037, 6.781646334275138e-06, 6.782015304906963e-08,
              4.707653711299997e-10, 2.4095807814317194e-12, 9.221437632586649e-15, 3.158271531678516e-17,
              4.660754331308863e-20, 2.8886773684647165e-22),
    "double": (1.0, 0.25, 0.015625, 0.00043402777777777775, 6.781684027777777e-06, 6.781684027777778e-08,
               4.709502797067899e-10, 2.4028075495244686e-12, 9.38596699032716e-15, 2.8969033920954805e-17,
               7.242258479231362e-20, 1.4963344006240256e-22, 2.59780264969385e-25, 3.842906507620109e-28,
               4.90160573853981e-31, 5.4471185633335995e-34, 5.309639024328794e-37, 4.671825983905341e-40,
               3.171411673764443e-43, 3.660440470734804e-46),
}  # fmt: skip
"""i0(x) in x**2 up to 8."""
I0_FAR = {
    "float": (0.40217649936676025, 0.0033605557400733232, 0.00013615602802019566, 1.1112148058600724e-05,
              1.6391348935940186e-06, 3.626670377343544e-07),
    "double": (0.4021765094450081, 0.0033605519836678614, 0.0001362160743919305, 1.1143033790932038e-05,
               1.4838475658279249e-06, 2.9735985885673923e-07, 8.872219737904054e-08, 3.932584334552952e-08,
               2.1548377974791598e-08, 7.55469188124881e-09, -6.747657956107541e-09, -1.3408917540089745e-08,
               -5.4047715675798986e-09, 7.552583062123396e-09, 7.4304646503252865e-09, -3.505966530879349e-09,
               -5.953569438264673e-09, 1.5200816953924414e-09, 3.637954635900889e-09, -5.715843864202832e-10,
               -1.6189806836245337e-09, 1.527920269498204e-10, 4.5770876316430635e-10, -2.0260604287414417e-11,
               -6.067631570602082e-11),
}  # fmt: skip
"""i0(x) * exp(-x) * sqrt(x) beyond 8, in 16 / x - 1."""
I1 = {
    "float": (0.5, 0.0625, 0.0026041667442768812, 5.4253479902399704e-05, 6.781669981137384e-07,
              5.651525913918931e-09, 3.363245446030838e-11, 1.5042654621932883e-13, 5.1533659211497e-16,
              1.5456262656344285e-18, 2.329194798210492e-21, 1.1460832344010488e-23),
    "double": (0.5, 0.0625, 0.0026041666666666665, 5.425347222222222e-05, 6.781684027777778e-07,
               5.651403356481481e-09, 3.363930569334215e-11, 1.5017547184527815e-13, 5.214426105738172e-16,
               1.4484516960428604e-18, 3.291935672589579e-21, 6.23472666217639e-24, 9.991548836513359e-27,
               1.372466242055085e-29, 1.633874200541939e-32, 1.702160175343996e-35, 1.562193110099688e-38,
               1.2946913102669577e-41, 8.451495114097665e-45, 8.981482444757646e-48),
}  # fmt: skip
"""i1(x) / x in x**2 up to 8."""
I1_FAR = {
    "float": (0.389398455619812, -0.0097495811060071, -0.00021923713211435825, -1.5003965017967857e-05,
              -1.8256907878821949e-06, -4.210350255107187e-07, -1.2273217464553454e-07),
    "double": (0.38939845902587233, -0.009749577193235737, -0.00021923576383388928, -1.5038547200567216e-05,
               -1.8349101326980946e-06, -3.483855761044295e-07, -1.0001288294864884e-07, -4.312917729178349e-08,
               -2.3373928208142642e-08, -8.427766093735185e-09, 6.734464815301609e-09, 1.4034238782067188e-08,
               5.974437608040204e-09, -7.64239413436357e-09, -7.888351507861937e-09, 3.4262341490078123e-09,
               6.242741219786225e-09, -1.438725053304119e-09, -3.794670896208111e-09, 5.295625441161379e-10,
               1.6848984479703649e-09, -1.401162517977108e-10, -4.758818838703288e-10, 1.8515118828853715e-11,
               6.305965197149121e-11),
}  # fmt: skip
"""i1(x) * exp(-x) * sqrt(x) beyond 8, in 16 / x - 1."""


def scaled_bessel(code: Code, x: Value, order: int) -> Value:
    """exp(-abs(x)) times the modified Bessel function of the first kind of order 0 or 1, without its sign."""
    element, size = element_of(x.type), code.abs(x)
    tables = (I1, I1_FAR) if order else (I0, I0_FAR)
    near = code.select(size > 8.0, 8.0, size)
    square = near.binary(near, ("fmul", ""))
    lost = code.fma(near, near, -square)  # counts: the polynomial grows quicker than what it is a polynomial of
    inside = polynomial(code, square, tables[0][element])
    inside = code.fma(inside, lost / code.fma(near, 2.0, 8.0 if order else 4.0), inside)
    inside = exp_times(code, -near, inside * near if order else inside)
    far = code.select(size < 8.0, 8.0, size)
    outside = polynomial(code, 16.0 / far - 1.0, tables[1][element]) / code.sqrt(far)
    return code.select(size > 8.0, outside, inside)


def i0e(code: Code, x: Value) -> Value:
    """The modified Bessel function of the first kind of order zero, times exp(-abs(x))."""
    return scaled_bessel(code, x, 0)


def i1e(code: Code, x: Value) -> Value:
    """The modified Bessel function of the first kind of order one, times exp(-abs(x))."""
    out = scaled_bessel(code, x, 1)
    return code.select(x < 0.0, -out, out)  # of -0.0, as in torch, it is 0.0


FUNCTIONS |= {
    "erfc": ("fd", erfc), "erfcx": ("fd", erfcx), "erfinv": ("fd", erfinv), "ndtri": ("fd", ndtri),
    "log_ndtr": ("fd", log_ndtr), "gammaln": ("fd", gammaln), "psi": ("fd", psi),
    "i0e": ("fd", i0e), "i1e": ("fd", i1e),
}  # fmt: skip
