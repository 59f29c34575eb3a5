"""Models written with the library, to use and to read."""

from pullback.models.gpt import GPT as GPT
from pullback.models.gpt import GPTConfig as GPTConfig
from pullback.models.resnet import ResNet as ResNet
from pullback.models.resnet import resnet18 as resnet18
from pullback.models.resnet import resnet34 as resnet34
from pullback.models.resnet import resnet50 as resnet50
