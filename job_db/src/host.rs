use std::sync::OnceLock;

const MAX_CHARS: usize = 60;

/// This machine's name, for people, cut at 60 characters: where the system says it, since std has no call for it.
pub fn host_name() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .or_else(|| std::env::var("HOSTNAME").ok())
            .or_else(|| std::env::var("COMPUTERNAME").ok())
            .map(|name| name.trim().chars().take(MAX_CHARS).collect::<String>())
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "unknown".to_owned())
    })
}
