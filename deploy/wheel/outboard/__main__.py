# SPDX-License-Identifier: Apache-2.0
# Copyright The Outboard Authors
"""`python -m outboard` is the command `outboard`."""
from outboard import main

main()
