"""Mixed precision, as far as it makes sense on a CPU."""

from pullback.amp.autocast import autocast as autocast
from pullback.amp.autocast import is_autocast_available as is_autocast_available
from pullback.amp.custom import custom_bwd as custom_bwd
from pullback.amp.custom import custom_fwd as custom_fwd
from pullback.amp.grad_scaler import GradScaler as GradScaler
