# SPDX-License-Identifier: Apache-2.0
require_relative "service"
run Service
