// Vector types stand in kf_vector_types.h.
#pragma once
