// Built-in variables stand in kf_device.h.
#pragma once
