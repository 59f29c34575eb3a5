"""The table of torch.utils.flop_counter, as torch prints it with tabulate."""

import pullback as torch
from pullback.utils.flop_counter import FlopCounterMode

FORWARD = """\
Module            FLOP    % Total
--------------  ------  ---------
Sequential         200    100.00%
 - aten.addmm      200    100.00%
 Sequential.0      120     60.00%
  - aten.addmm     120     60.00%
 Sequential.2       80     40.00%
  - aten.addmm      80     40.00%"""
SHALLOW = """\
Module           FLOP    % Total
-------------  ------  ---------
Sequential        200    100.00%
 - aten.addmm     200    100.00%"""
BACKWARD = """\
Module                           FLOP    % Total
----------------------------  -------  ---------
Conv2d                        82.944K    100.00%
 - aten.convolution           41.472K     50.00%
 - aten.convolution_backward  41.472K     50.00%"""
OUTSIDE = """\
Module            FLOP    % Total
--------------  ------  ---------
Global              40    100.00%
 - aten.addmm       24     60.00%
 - aten.mm          16     40.00%
 Linear             24     60.00%
  - aten.addmm      24     60.00%"""
EMPTY = """\
Module      FLOP    % Total
--------  ------  ---------
Global         0         0%"""


def test_modules_are_listed_with_their_ops(capsys):
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    with FlopCounterMode() as counter:
        model(torch.randn(4, 3))
    assert capsys.readouterr().out == FORWARD + "\n"
    assert counter.get_table() == FORWARD
    assert counter.get_table(1) == SHALLOW


def test_thousands_have_a_suffix():
    model = torch.nn.Conv2d(3, 4, 3, padding=1)
    with FlopCounterMode(display=False) as counter:
        model(torch.randn(3, 3, 8, 8)).sum().backward()
    assert counter.get_table() == BACKWARD


def test_what_is_in_no_module_is_listed_first():
    model = torch.nn.Linear(3, 2)
    with FlopCounterMode(display=False) as counter:
        model(torch.randn(2, 3))
        torch.randn(2, 2) @ torch.randn(2, 2)
    assert counter.get_table() == OUTSIDE


def test_nothing_is_listed_as_nothing():
    with FlopCounterMode(display=False) as counter:
        torch.ones(2) + 1
    assert counter.get_table() == EMPTY
