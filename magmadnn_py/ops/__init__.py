"""The ops: one file per family, each with all the framework knows of its ops. `ops.<name>` are the public functions
(Keras's `keras.ops` names); they take graph values, symbols, variables, tensors and arrays alike."""

from .activation import *
from .conv import *
from .conv_pooled import *
from .elementwise import *
from .function import convert
from .loss import *
from .matmul import *
from .movement import *
from .norm import *
from .pool import *
from .random import *
from .reduce import *
