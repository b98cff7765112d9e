// The make_ functions stand in kf_vector_types.h.
#pragma once
