//! The devices of a machine and of the workers of a server, and which of them a target means. Only [`Devices::resolve`] turns an architecture and a product into
//! devices. From there on, nodes, jobs and requests to workers carry the UUIDs of the devices.

use std::sync::Arc;

use super::DeviceClass;
use kforge_foundation::base::Digest;

/// A device of this machine, or of a worker of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its UUID, as `CUDA_VISIBLE_DEVICES` takes it: `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// The class for which its measurements are valid.
    pub class: DeviceClass,
}

/// The devices of this machine, in the order of the driver, and then those of the workers of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Devices(pub Vec<Device>);

/// Names a device in observations, which others read: 16 hexadecimal digits of a digest of its UUID. Equal names mean one device.
pub fn device_id(uuid: &str) -> String {
    Digest::of(uuid.as_bytes()).hex()[..16].to_string()
}

/// What the name of a device begins with that a worker of a server holds. No UUID of a driver begins like this.
const REMOTE: &str = "remote-";

/// Whether a device is one that a worker of a server holds. Which one it is, the server decides for each step.
pub fn is_remote(uuid: &str) -> bool {
    uuid.starts_with(REMOTE)
}

impl Device {
    /// The device with this number among those that workers of a server hold. Their driver is not known before they answer.
    pub fn remote(number: usize, product: String, arch: String) -> Device {
        Device { uuid: format!("{REMOTE}{number}"), class: DeviceClass { product, arch, driver_major: 0, mig: None } }
    }
}

/// UUIDs of devices of one class, in the order of the driver: a step may run on any of them.
pub type Uuids = Arc<[String]>;

/// The devices that a target means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved<'a> {
    /// Their class.
    pub class: &'a DeviceClass,
    /// The UUIDs of one or more of them.
    pub uuids: Uuids,
}

impl Devices {
    /// Whether there are no devices.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The devices that run code for an architecture and belong to the product, if one is named. Returns the first such device and all other devices of its
    /// class, or none if no device fits.
    pub fn resolve(&self, arch: &str, product: Option<&str>) -> Option<Resolved<'_>> {
        let fits = |device: &&Device| device.class.runs(arch) && product.is_none_or(|p| p == device.class.product);
        let class = &self.0.iter().find(fits)?.class;
        let alike = self.0.iter().filter(|device| device.class == *class);
        Some(Resolved { class, uuids: alike.map(|device| device.uuid.clone()).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn devices() -> Devices {
        let class = |product: &str, arch: &str| DeviceClass {
            product: product.into(),
            arch: arch.into(),
            driver_major: 580,
            mig: None,
        };
        let device = |uuid: &str, class| Device { uuid: uuid.into(), class };
        let h200 = || class("NVIDIA H200", "sm_90");
        Devices(vec![
            device("GPU-0", h200()),
            device("GPU-1", class("NVIDIA A100", "sm_80")),
            device("GPU-2", h200()),
            device("MIG-3", DeviceClass { mig: Some("1g.18gb".into()), ..h200() }),
        ])
    }

    #[test]
    fn the_devices_run_the_code_and_are_the_product_that_is_named() {
        let devices = devices();
        let of = |arch: &str, product| devices.resolve(arch, product).map(|r| r.class.product.as_str());
        assert_eq!(of("sm_90a", None), Some("NVIDIA H200"));
        assert_eq!(of("sm_80", None), Some("NVIDIA A100"));
        assert_eq!(of("sm_80", Some("NVIDIA H200")), None);
        assert_eq!(of("sm_100", None), None);
    }

    #[test]
    fn all_devices_of_the_class_are_meant_and_none_of_another() {
        let devices = devices();
        let of = |arch: &str| devices.resolve(arch, None).unwrap().uuids.to_vec();
        assert_eq!(of("sm_90a"), ["GPU-0", "GPU-2"]);
        assert_eq!(of("sm_80"), ["GPU-1"]);
    }
    #[test]
    fn a_device_of_this_machine_comes_before_one_of_a_worker_and_the_two_are_no_class() {
        let remote = |number, product: &str| Device::remote(number, product.into(), "sm_90".into());
        let mut all = devices();
        all.0.extend([remote(0, "NVIDIA H200"), remote(1, "NVIDIA GH200"), remote(2, "NVIDIA GH200")]);
        let of = |product| all.resolve("sm_90a", Some(product)).unwrap().uuids.to_vec();
        assert_eq!(of("NVIDIA H200"), ["GPU-0", "GPU-2"]);
        assert_eq!(of("NVIDIA GH200"), ["remote-1", "remote-2"]);
        assert!(of("NVIDIA GH200").iter().all(|uuid| is_remote(uuid)) && !is_remote("GPU-0"));
    }
}
