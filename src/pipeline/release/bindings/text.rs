//! What the loaders of all languages share: rendering of templates, and numbers of dtypes. Knows no language.

use minijinja::{Environment, UndefinedBehavior, Value};

use kforge_types::model::DType;

/// Renders a template. An undefined name is an error.
pub(super) fn render(name: &str, template: &str, context: Value) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    // The engine drops the newline at the end of a template.
    environment.render_named_str(name, template, context).map(|text| text + "\n")
}

/// The values of an integer type that 64 bits with a sign hold.
pub(super) fn range(dtype: DType) -> (i64, i64) {
    match dtype {
        DType::U64 => (0, i64::MAX),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    }
}

/// The number of a type in tensor maps (`CUtensorMapDataType`). Types of eight bits and packed types are copied as bytes.
pub(super) fn map_type(dtype: DType) -> u8 {
    match dtype {
        DType::I16 | DType::U16 => 1,
        DType::U32 => 2,
        DType::I32 => 3,
        DType::U64 => 4,
        DType::I64 => 5,
        DType::F16 => 6,
        DType::F32 => 7,
        DType::F64 => 8,
        DType::Bf16 => 9,
        _ => 0,
    }
}
