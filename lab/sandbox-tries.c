// Tries actions that the sandbox of a systemd unit forbids, or that a unit needs. `lab/systemd-guest` runs this in a guest inside of
// the units of plumb and of variants of them (docs/security.md).
//
//   sandbox-tries NAME...     prints for each name one line: NAME done, NAME refused ERRNO-NAME, or NAME killed SIGNAL
//
// Each action runs in a process of its own, because some end it. An action is small and is undone if something would remain. It
// expects files that the guest makes: /lab/other-user (a copy of this program with set-user-ID of NOBODY), /lab/private (mode 0600, of
// NOBODY), and SECRET in /root and /tmp.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/fs.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534
#define SECRET "plumb-lab-secret"
#define MIB (1024L * 1024)

// An action returns 0 if it is done, and -1 with errno if it is refused.

static int closed(int descriptor) {
	return descriptor < 0 ? -1 : close(descriptor);
}

static int read_file(const char *path) {
	char byte;
	int file = open(path, O_RDONLY);
	if (file < 0 || read(file, &byte, 1) < 0)
		return -1;
	return close(file);
}

static int list_folder(const char *path) {
	DIR *folder = opendir(path);
	return folder ? closedir(folder) : -1;
}

static int make_file(const char *folder, char path[4096]) {
	snprintf(path, 4096, "%s/try-%d", folder, getpid());
	return open(path, O_CREAT | O_EXCL | O_RDWR, 0666);
}

static int write_in(const char *folder) {
	char path[4096];
	int file = make_file(folder, path);
	if (file < 0 || write(file, "x", 1) != 1)
		return -1;
	close(file);
	return unlink(path);
}

// The folder of a unit; without its directive one that systemd has not made.
static const char *folder_of(const char *variable, const char *other) {
	const char *folder = getenv(variable);
	return folder ? folder : other;
}

static const char *state(void) { return folder_of("STATE_DIRECTORY", "/var/lib/try-without-directive"); }
static const char *runtime(void) { return folder_of("RUNTIME_DIRECTORY", "/run/try-without-directive"); }
// A folder to write to: the state of the agent, or the runtime folder of the survey.
static const char *any_folder(void) { return folder_of("STATE_DIRECTORY", runtime()); }

// Becomes a user without rights: what this one may not do, other users may not.
static int become_nobody(void) {
	return setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ? -1 : 0;
}

static int write_state(void) { return write_in(state()); }
static int write_runtime(void) { return write_in(runtime()); }
static int write_etc(void) { return write_in("/etc"); }
static int read_shadow(void) { return read_file("/etc/shadow"); }
static int read_home(void) { return read_file("/root/" SECRET); }
static int read_tmp(void) { return read_file("/tmp/" SECRET); }
static int read_private(void) { return read_file("/lab/private"); }
static int read_disk(void) { return read_file("/dev/nvme0n1"); }
static int see_init(void) { return read_file("/proc/1/status"); }
static int list_modules(void) { return list_folder("/usr/lib/modules"); }
static int enter_state(void) { return become_nobody() ? -1 : list_folder(state()); }
static int enter_runtime(void) { return become_nobody() ? -1 : list_folder(runtime()); }

static int read_new_file(void) {
	char path[4096];
	int file = make_file(any_folder(), path);
	if (closed(file))
		return -1;
	pid_t child = fork();
	if (child == 0) {
		int result = become_nobody() ? -1 : closed(open(path, O_RDONLY));
		_exit(result ? errno : 0);
	}
	int status = 0;
	waitpid(child, &status, 0);
	unlink(path);
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

static int change_owner(void) {
	char path[4096];
	int file = make_file(any_folder(), path);
	if (file < 0)
		return -1;
	int result = fchown(file, NOBODY, NOBODY), found = errno;
	unlink(path);
	errno = found;
	return result;
}

static int set_suid(void) {
	char path[4096];
	int file = make_file(any_folder(), path);
	if (file < 0)
		return -1;
	int result = fchmod(file, 04755), found = errno;
	unlink(path);
	errno = found;
	return result;
}

static int set_trusted_attribute(void) {
	char path[4096];
	int file = make_file(any_folder(), path);
	if (file < 0)
		return -1;
	int result = fsetxattr(file, "trusted.plumb", "x", 1, 0), found = errno;
	unlink(path);
	errno = found;
	return result;
}

static int map_block(void) {
	int block = 0, file = open("/etc/shadow", O_RDONLY);
	return file < 0 ? -1 : ioctl(file, FIBMAP, &block);
}

static int become_other_user(void) {
	execl("/lab/other-user", "other-user", "--is-nobody", NULL);
	return -1;
}

static int set_personality(void) { return personality(ADDR_NO_RANDOMIZE) == -1 ? -1 : 0; }

static int map_writable_code(void) {
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED ? -1 : 0;
}

static int open_socket(void) { return closed(socket(AF_INET, SOCK_STREAM, 0)); }

static int connect_to_host(void) {
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9974), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int end = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (end < 0)
		return -1;
	if (connect(end, (struct sockaddr *)&address, sizeof address) == 0)
		return close(end);
	if (errno != EINPROGRESS)
		return -1;
	// A packet that is dropped has no answer.
	struct timespec pause = {.tv_sec = 2};
	nanosleep(&pause, NULL);
	return connect(end, (struct sockaddr *)&address, sizeof address);
}

static int set_clock(void) {
	struct timespec now;
	return clock_gettime(CLOCK_REALTIME, &now) || clock_settime(CLOCK_REALTIME, &now) ? -1 : 0;
}

/* In a group of the guest that all users may write to. */
static int make_cgroup(void) {
	const char *path = "/sys/fs/cgroup/tries/plumb-try";
	return mkdir(path, 0700) ? -1 : rmdir(path);
}

static int set_hostname(void) {
	char name[65];
	return gethostname(name, sizeof name) || sethostname(name, strlen(name)) ? -1 : 0;
}

static int read_kernel_log(void) {
	static char log[4096];
	return klogctl(3, log, sizeof log) < 0 ? -1 : 0;
}

// The kernel looks for the module only after it has looked at the right.
static int remove_module(void) {
	if (syscall(SYS_delete_module, "no_such_module", O_NONBLOCK) == 0)
		return 0;
	return errno == ENOENT ? 0 : -1;
}

static int open_tunable(void) { return closed(open("/proc/sys/vm/swappiness", O_WRONLY)); }
static int make_namespace(void) { return unshare(CLONE_NEWUSER); }

static int set_realtime(void) {
	struct sched_param priority = {.sched_priority = 1};
	return sched_setscheduler(0, SCHED_FIFO, &priority);
}

// getpid of the 32-bit processor.
static int call_as_i386(void) {
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(20) : "memory", "r8", "r9", "r10", "r11");
	errno = result < 0 ? (int)-result : 0;
	return result < 0 ? -1 : 0;
}

static int trace_me(void) { return ptrace(PTRACE_TRACEME, 0, 0, 0) ? -1 : 0; }

// Whether a refused call is an error and no end of the process.
static int survive_refusal(void) {
	trace_me();
	return 0;
}

// The key is that of the unit: 1000 and the number at the end of its name.
static int keep_shared_memory(void) {
	const char *number = strrchr(state(), '-');
	return shmget(1000 + (number ? atoi(number + 1) : 0), 4096, IPC_CREAT | 0600) < 0 ? -1 : 0;
}

static int load_program(void) {
	struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr program = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT, .insn_cnt = 2, .insns = (__u64)code, .license = (__u64) "GPL"};
	return closed((int)syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof program));
}

static int open_counter(void) {
	struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event, .config = PERF_COUNT_SW_CPU_CLOCK};
	return closed((int)syscall(SYS_perf_event_open, &event, -1, 0, -1, 0));
}

// Bad arguments are an answer of the kernel, and EPERM one of the filter.
static int answers(long number, long first, long second) {
	return syscall(number, first, second, 0, 0) < 0 && errno == EPERM ? -1 : 0;
}

static int make_ruleset(void) { return answers(SYS_landlock_create_ruleset, 0, 0); }
static int add_rule(void) { return answers(SYS_landlock_add_rule, -1, 0); }
static int restrict_self(void) { return answers(SYS_landlock_restrict_self, -1, -1); }
static int ask_seccomp(void) { return answers(SYS_seccomp, -1, 0); }

static int take(long bytes) {
	char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -1;
	for (long at = 0; at < bytes; at += 4096)
		memory[at] = 1;
	return munmap(memory, bytes);
}

static int take_200_mib(void) { return take(200 * MIB); }
static int take_600_mib(void) { return take(600 * MIB); }

static int lock_16_mib(void) {
	char *memory = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return memory == MAP_FAILED ? -1 : mlock(memory, 16 * MIB);
}

// Computes for 300 ms of processor time, and looks for a time in which the cgroup had to wait.
static int compute(void) {
	while (clock() < CLOCKS_PER_SEC * 3 / 10)
		;
	char path[4096] = "/sys/fs/cgroup", line[4096];
	FILE *file = fopen("/proc/self/cgroup", "r");
	if (!file || !fgets(line, sizeof line, file))
		return -1;
	line[strcspn(line, "\n")] = 0;
	snprintf(path + strlen(path), sizeof path - strlen(path) - 16, "%.4000s/cpu.stat", line + strlen("0::"));
	file = fopen(path, "r");
	long waits = 0;
	while (file && fgets(line, sizeof line, file))
		sscanf(line, "nr_throttled %ld", &waits);
	errno = file ? EDQUOT : errno;
	return !file || waits ? -1 : 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} actions[] = {
#define ACTION(name) {#name, name}
	ACTION(write_state), ACTION(write_runtime), ACTION(write_etc), ACTION(read_shadow), ACTION(read_home), ACTION(read_tmp),
	ACTION(read_private), ACTION(read_disk), ACTION(see_init), ACTION(list_modules), ACTION(enter_state), ACTION(enter_runtime),
	ACTION(read_new_file), ACTION(change_owner), ACTION(set_suid), ACTION(set_trusted_attribute), ACTION(map_block),
	ACTION(become_other_user), ACTION(set_personality), ACTION(map_writable_code), ACTION(open_socket), ACTION(connect_to_host),
	ACTION(set_clock), ACTION(make_cgroup), ACTION(set_hostname), ACTION(read_kernel_log), ACTION(remove_module),
	ACTION(open_tunable), ACTION(make_namespace), ACTION(set_realtime), ACTION(call_as_i386), ACTION(trace_me),
	ACTION(survive_refusal), ACTION(keep_shared_memory), ACTION(load_program), ACTION(open_counter), ACTION(make_ruleset),
	ACTION(add_rule), ACTION(restrict_self), ACTION(ask_seccomp), ACTION(take_200_mib), ACTION(take_600_mib), ACTION(lock_16_mib),
	ACTION(compute),
};

static int run(const char *name) {
	for (size_t at = 0; at < sizeof actions / sizeof *actions; at++)
		if (strcmp(actions[at].name, name) == 0)
			return actions[at].run();
	fprintf(stderr, "sandbox-tries: found no action '%s'\n", name);
	_exit(125);
}

int main(int count, char **names) {
	if (count == 2 && strcmp(names[1], "--is-nobody") == 0)
		return geteuid() == NOBODY ? 0 : EPERM;
	for (int at = 1; at < count; at++) {
		pid_t child = fork();
		if (child == 0) {
			errno = 0;
			int result = run(names[at]);
			_exit(result ? errno : 0);
		}
		int status = 0;
		waitpid(child, &status, 0);
		if (WIFSIGNALED(status))
			printf("%s killed %s\n", names[at], sigabbrev_np(WTERMSIG(status)));
		else if (WEXITSTATUS(status) == 0)
			printf("%s done\n", names[at]);
		else
			printf("%s refused %s\n", names[at], strerrorname_np(WEXITSTATUS(status)));
		fflush(stdout);
	}
	return 0;
}
