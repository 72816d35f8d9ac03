// An emulated driver for cards of NVIDIA: what our programs call of libcuda.so.1, with kernels that run on the CPU (simt.hpp). It behaves as
// the worst driver that is still right. Operations of streams run only when something waits for them, so that a missing wait is seen, and
// writes beside allocations end the program. README.md says what it checks, and which variables change it.
#include "emulator.hpp"
#include "rp_emu.h"

#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <pthread.h>
#include <set>
#include <sys/mman.h>

namespace rp_emu {

namespace {

using Result = int;
using Pointer = uint64_t;

enum : Result {
	ok = 0, invalid_value = 1, out_of_memory = 2, not_initialized = 3, no_device = 100, invalid_device = 101, invalid_image = 200,
	invalid_context = 201, invalid_ptx = 218, invalid_handle = 400, not_found = 500, not_ready = 600, primary_active = 708,
	context_destroyed = 709, already_registered = 712, not_registered = 713,
};

constexpr size_t guard_bytes = 1024, kept_bytes = 64 << 20;
constexpr size_t max_dynamic_shared = 48 << 10;

const std::map<Result, std::pair<const char*, const char*>> error_texts = {
	{0, {"CUDA_SUCCESS", "no error"}},
	{1, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
	{2, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
	{3, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
	{4, {"CUDA_ERROR_DEINITIALIZED", "driver shutting down"}},
	{34, {"CUDA_ERROR_STUB_LIBRARY", "CUDA driver is a stub library"}},
	{46, {"CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"}},
	{100, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
	{101, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
	{200, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
	{201, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
	{209, {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"}},
	{214, {"CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"}},
	{218, {"CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"}},
	{221, {"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"}},
	{222, {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."}},
	{400, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
	{500, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
	{600, {"CUDA_ERROR_NOT_READY", "device not ready"}},
	{700, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
	{701, {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"}},
	{702, {"CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"}},
	{708, {"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "cannot set while device is active in this process"}},
	{709, {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"}},
	{710, {"CUDA_ERROR_ASSERT", "device-side assert triggered"}},
	{712, {"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "part or all of the requested memory range is already mapped"}},
	{713, {"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"}},
	{714, {"CUDA_ERROR_HARDWARE_STACK_ERROR", "hardware stack error"}},
	{715, {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"}},
	{716, {"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"}},
	{719, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
	{801, {"CUDA_ERROR_NOT_SUPPORTED", "operation not supported"}},
	{802, {"CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"}},
	{803, {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "system has unsupported display driver / cuda driver combination"}},
	{999, {"CUDA_ERROR_UNKNOWN", "unknown error"}},
};

std::recursive_mutex all; // one call at a time
struct Lock : std::lock_guard<std::recursive_mutex> { Lock() : lock_guard(all) {} };

uint64_t number_of(const char* variable, uint64_t otherwise) {
	const char* s = getenv(variable);
	return s && *s ? strtoull(s, nullptr, 0) : otherwise;
}

int devices() { return int(number_of("RP_EMU_DEVICES", 1)); }
uint64_t total_memory() { return number_of("RP_EMU_MEMORY", uint64_t(1) << 30); }
bool eager() {
	const char* s = getenv("RP_EMU_ORDER");
	return s && !strcmp(s, "eager");
}

// Faults: RP_EMU_FAULT="kind:kernel:count:code" or "kind:count:code", several with ";" between.

struct Fault {
	std::string kind, kernel;
	uint64_t count = 0;
	Result code = 0;
};
std::vector<Fault> faults;
std::string faults_text;

void read_faults() {
	const char* s = getenv("RP_EMU_FAULT");
	std::string text = s ? s : "";
	if (text == faults_text) return;
	faults_text = text;
	faults.clear();
	for (size_t at = 0; at < text.size();) {
		size_t end = std::min(text.find(';', at), text.size());
		std::vector<std::string> parts(1);
		for (char c : text.substr(at, end - at))
			if (c == ':') parts.emplace_back();
			else parts.back() += c;
		at = end + 1;
		bool named = parts[0] == "launch" || parts[0] == "async";
		if (parts.size() != (named ? 4 : 3)) fail("RP_EMU_FAULT=%s cannot be read", text.c_str());
		faults.push_back({parts[0], named ? parts[1] : "", strtoull(parts[parts.size() - 2].c_str(), nullptr, 10), atoi(parts.back().c_str())});
	}
}

// fault counts a call, and returns the code with which it is to fail.
Result fault(const char* kind, const char* kernel = "") {
	read_faults();
	Result code = ok;
	for (auto& f : faults) {
		if (f.kind != kind || !(f.kernel.empty() || f.kernel == "*" || f.kernel == kernel) || f.count == 0) continue;
		if (--f.count == 0) code = f.code;
	}
	return code;
}

// Contexts, and what they have.

struct Context;
struct Stream;

struct Record { // of an event in a stream
	Stream* stream = nullptr;
	bool done = false;
	double time = 0;
};

struct Event {
	Context* context;
	unsigned flags;
	std::shared_ptr<Record> last;
};

struct Operation {
	std::string name;
	std::function<void()> run;          // empty for the others
	std::shared_ptr<Record> record, wait;
};

struct Stream {
	Context* context;
	bool blocking; // it waits for the stream NULL
	bool destroyed = false;
	std::deque<Operation> queue;
};

struct Module {
	Context* context;
	std::string image;
	bool unloaded = false;
};

struct Function {
	Module* module;
	const Kernel* kernel;
	int dynamic_shared = max_dynamic_shared;
};

struct Context {
	int device;
	unsigned flags = 0;
	bool destroyed = false;
	Result sticky = ok;
	Stream null{this, false};
	std::vector<std::unique_ptr<Stream>> streams; // the oldest first
};

enum Kind { device_memory, pinned, registered };

struct Allocation {
	Kind kind;
	char *block, *begin; // the block begins with the guard; registered memory has none
	size_t size;
	Context* context;
	uint64_t end() const { return uint64_t(begin) + size; }
};

struct Live { uint64_t device_bytes = 0, host_bytes = 0, streams = 0, events = 0, modules = 0; };

bool initialized;
std::map<uint64_t, Allocation> allocations; // by their beginnings
std::deque<Allocation> kept;                // freed, with a pattern that must stay
size_t kept_size;
std::map<int, uint64_t> used;
std::map<int, Live> lost; // of contexts that were destroyed with things in them
std::set<Context*> contexts;
std::set<Event*> events;
std::set<Module*> modules;
std::map<std::pair<Module*, std::string>, std::unique_ptr<Function>> functions;
std::set<Function*> known_functions;
std::map<int, std::pair<Context*, int>> primaries; // with the number of their users
bool written; // since guards were looked at
std::string last_kernel = "none";
std::map<std::string, Kernel>& kernels() {
	static std::map<std::string, Kernel> k;
	return k;
}

double now() {
	timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return double(t.tv_sec) * 1e3 + double(t.tv_nsec) / 1e6;
}

// The contexts of a thread of the CPU, the current one last. Memory of threads is what kernels share: this is elsewhere.
std::vector<Context*>& stack() {
	static pthread_key_t key = [] {
		pthread_key_t k;
		pthread_key_create(&k, [](void* p) { delete static_cast<std::vector<Context*>*>(p); });
		return k;
	}();
	auto s = static_cast<std::vector<Context*>*>(pthread_getspecific(key));
	if (!s) pthread_setspecific(key, s = new std::vector<Context*>);
	return *s;
}

// Memory.

const char* name_of(Kind k) { return k == device_memory ? "device memory" : k == pinned ? "pinned memory" : "registered memory"; }

bool has(const char* p, size_t n, uint32_t pattern) {
	for (size_t i = 0; i < n / 4; i++)
		if (reinterpret_cast<const uint32_t*>(p)[i] != pattern) return false;
	for (size_t i = n / 4 * 4; i < n; i++)
		if (p[i] != char(pattern >> 8 * (i % 4))) return false;
	return true;
}

size_t padded(size_t n) { return (n + 3) / 4 * 4; }

void check(const Allocation& a) {
	if (a.kind == registered) return;
	const char* where = nullptr;
	char tail[4] = {};
	fill(tail, 4, guard_pattern);
	if (!has(a.begin - guard_bytes, guard_bytes, guard_pattern)) where = "in front of";
	else if (memcmp(a.begin + a.size, tail + a.size % 4, padded(a.size) - a.size)) where = "behind";
	else if (!has(a.begin + padded(a.size), guard_bytes, guard_pattern)) where = "behind";
	if (where)
		fail("bytes %s an allocation of %zu bytes of %s at %p, device %d, were overwritten; the last kernel was %s", where, a.size,
			name_of(a.kind), static_cast<void*>(a.begin), a.context->device, last_kernel.c_str());
}

void check_kept(const Allocation& a) {
	if (!has(a.begin - guard_bytes, 2 * guard_bytes + padded(a.size), freed_pattern))
		fail("freed memory was written: %zu bytes of %s at %p, device %d; the last kernel was %s", a.size, name_of(a.kind),
			static_cast<void*>(a.begin), a.context->device, last_kernel.c_str());
}

void check_guards() {
	if (!written) return;
	written = false;
	for (auto& [p, a] : allocations) check(a);
}

size_t block_size_of(size_t n) { return guard_bytes + padded(n) + guard_bytes; }

Allocation allocate(Kind kind, size_t n, Context* c) {
	// Addresses are above 2^32, as those of cards are: numbers are not taken for them. They are multiples of 1024 and not of a page's
	// size: a little more than cards promise.
	auto block = static_cast<char*>(mmap(nullptr, block_size_of(n), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	if (block == MAP_FAILED) fail("no memory for an allocation of %zu bytes", n);
	Allocation a{kind, block, block + guard_bytes, n, c};
	fill(block, guard_bytes, guard_pattern);
	fill(a.begin, n, fresh_pattern);
	fill(a.begin + n, padded(n) - n + guard_bytes, guard_pattern);
	allocations[uint64_t(a.begin)] = a;
	return a;
}

void release(uint64_t p) {
	Allocation a = allocations[p];
	check(a);
	allocations.erase(p);
	if (a.kind == device_memory) used[a.context->device] -= a.size;
	if (a.kind == registered) return;
	fill(a.begin - guard_bytes, 2 * guard_bytes + padded(a.size), freed_pattern);
	kept.push_back(a);
	kept_size += a.size;
	while (kept_size > kept_bytes) {
		check_kept(kept.front());
		kept_size -= kept.front().size;
		munmap(kept.front().block, block_size_of(kept.front().size));
		kept.pop_front();
	}
}

// find returns the allocation that p is in, or at the end of.
const Allocation* find(uint64_t p) {
	auto i = allocations.upper_bound(p);
	if (i == allocations.begin()) return nullptr;
	--i;
	return p <= i->second.end() ? &i->second : nullptr;
}

// freed returns the allocation that p was in.
const Allocation* freed(uint64_t p) {
	for (auto& a : kept)
		if (p >= uint64_t(a.begin) && p < a.end()) return &a;
	return nullptr;
}

std::string describe(uint64_t p) {
	if (auto a = freed(p)) return "it was freed, and had " + std::to_string(a->size) + " bytes";
	auto a = find(p);
	if (!a) return "it is in no allocation";
	return "it is " + std::to_string(p - uint64_t(a->begin)) + " bytes into " + std::to_string(a->size) + " bytes of " + name_of(a->kind) +
		" of device " + std::to_string(a->context->device);
}

// on_device ends the program unless n bytes at p may be used by operations of c.
void on_device(const char* what, uint64_t p, size_t n, Context* c) {
	auto a = find(p);
	if (a && p + n <= a->end() && (a->kind != device_memory || a->context->device == c->device)) return;
	fail("%s: %zu bytes at %#zx are not memory of device %d: %s; the last kernel was %s", what, n, size_t(p), c->device, describe(p).c_str(),
		last_kernel.c_str());
}

// on_host reports whether n bytes at p are pinned, and ends the program if they are memory of a device.
bool on_host(const char* what, const void* p, size_t n) {
	auto a = find(uint64_t(p));
	if (!a || (uint64_t(p) == a->end() && a->kind == registered)) return false;
	if (a->kind == device_memory) fail("%s: %p is meant to be memory of the host: %s", what, p, describe(uint64_t(p)).c_str());
	if (uint64_t(p) + n > a->end()) fail("%s: %zu bytes at %p: %s", what, n, p, describe(uint64_t(p)).c_str());
	return true;
}

// Streams.

void run_next(Stream* s);

void run_until(const std::shared_ptr<Record>& r) {
	while (!r->done) run_next(r->stream);
}

void run_next(Stream* s) {
	if (s->queue.empty()) fail("an event was recorded in a stream that has nothing to do");
	Operation o = std::move(s->queue.front());
	if (o.wait) run_until(o.wait);
	s->queue.pop_front();
	if (o.run && !s->context->sticky) {
		o.run();
		written = true;
	}
	if (o.record) {
		o.record->done = true;
		o.record->time = now();
	}
}

void run_all(Stream* s) {
	while (!s->queue.empty()) run_next(s);
}

// run_all runs everything of a context, the youngest streams first.
void run_all(Context* c) {
	for (size_t i = c->streams.size(); i-- > 0;) run_all(c->streams[i].get());
	run_all(&c->null);
	auto& v = c->streams;
	v.erase(std::remove_if(v.begin(), v.end(), [](auto& s) { return s->destroyed; }), v.end());
}

void run_blocking(Context* c) {
	for (auto& s : c->streams)
		if (s->blocking) run_all(s.get());
	run_all(&c->null);
}

void enqueue(Stream* s, Operation o) {
	// The stream NULL and those that it does not leave alone wait for each other.
	if (s == &s->context->null) {
		for (auto& other : s->context->streams)
			if (other->blocking) run_all(other.get());
	} else if (s->blocking) {
		run_all(&s->context->null);
	}
	s->queue.push_back(std::move(o));
	if (eager()) run_all(s);
}

Result current(Context** c) {
	if (!initialized) return not_initialized;
	auto& s = stack();
	if (s.empty() || !s.back()) return invalid_context;
	*c = s.back();
	if ((*c)->destroyed) return context_destroyed;
	return (*c)->sticky;
}

Stream* find_stream(Context* c, void* handle) {
	if (!handle || handle == reinterpret_cast<void*>(1)) return &c->null;
	for (auto& s : c->streams)
		if (s.get() == handle && !s->destroyed) return s.get();
	return nullptr;
}

// Each call begins with one of these.
#define ENTER                                              \
	Lock lock;                                             \
	Context* c = nullptr;                                  \
	if (Result r = current(&c)) return r;
#define STREAM(handle)                                     \
	Stream* s = find_stream(c, handle);                    \
	if (!s) return invalid_handle;

// finished is the result of a call that has waited.
Result finished(Context* c) {
	check_guards();
	return c->sticky;
}

// Copies.

enum Direction { to_device, to_host, in_device };

const char* name_of(Direction d) { return d == to_device ? "a copy to the device" : d == to_host ? "a copy to the host" : "a copy"; }

// check_copy reports whether the host's side is pinned.
bool check_copy(Direction d, uint64_t to, uint64_t from, size_t n, Context* c) {
	if (d != to_host) on_device(name_of(d), to, n, c);
	if (d != to_device) on_device(name_of(d), from, n, c);
	if (d == to_device) return on_host(name_of(d), reinterpret_cast<void*>(from), n);
	if (d == to_host) return on_host(name_of(d), reinterpret_cast<void*>(to), n);
	return true;
}

void move(uint64_t to, uint64_t from, size_t n) { memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n); }

Result copy(Direction d, uint64_t to, uint64_t from, size_t n) {
	ENTER
	if (Result r = fault("copy")) return r;
	if (n == 0) return ok;
	check_copy(d, to, from, n, c);
	run_blocking(c);
	if (!c->sticky) move(to, from, n);
	written = true;
	return finished(c);
}

Result copy_later(Direction d, uint64_t to, uint64_t from, size_t n, void* stream) {
	ENTER
	STREAM(stream)
	if (Result r = fault("copy")) return r;
	if (n == 0) return ok;
	bool free = check_copy(d, to, from, n, c);
	Operation o;
	o.name = name_of(d);
	if (free || d == to_host) {
		o.run = [=] {
			check_copy(d, to, from, n, c);
			move(to, from, n);
		};
	} else { // the driver has its own copy of pageable memory before it returns
		auto bytes = std::make_shared<std::vector<char>>(n);
		move(uint64_t(bytes->data()), from, n);
		o.run = [=] {
			on_device(name_of(d), to, n, c);
			move(to, uint64_t(bytes->data()), n);
		};
	}
	enqueue(s, std::move(o));
	if (!free && d == to_host) {
		run_all(s);
		return finished(c);
	}
	return ok;
}

template <class T> Result set(uint64_t to, T value, size_t n, void* stream) {
	ENTER
	STREAM(stream)
	if (n == 0) return ok;
	if (to % sizeof(T)) return invalid_value;
	on_device("setting memory", to, n * sizeof(T), c);
	enqueue(s, {"set", [=] {
		on_device("setting memory", to, n * sizeof(T), c);
		std::fill_n(reinterpret_cast<T*>(to), n, value);
	}, nullptr, nullptr});
	return ok;
}

// Launches.

pthread_t kernel_thread;
bool in_kernel;
struct sigaction old_action[32];

// on_signal says which thread of a kernel has used memory that is not there.
void on_signal(int number, siginfo_t* info, void* context) {
	if (in_kernel && pthread_equal(kernel_thread, pthread_self())) {
		sigaction(number, &old_action[number], nullptr);
		in_kernel = false;
		auto b = block_index;
		auto t = self ? self->index : dim3(0, 0, 0);
		fail("kernel %s, block (%u, %u, %u), thread (%u, %u, %u): signal %d at address %p", last_kernel.c_str(), b.x, b.y, b.z, t.x, t.y, t.z,
			number, info->si_addr);
	}
	auto& old = old_action[number];
	if (old.sa_flags & SA_SIGINFO) old.sa_sigaction(number, info, context);
	else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) old.sa_handler(number);
	else {
		sigaction(number, &old, nullptr);
		raise(number);
	}
}

struct Launch {
	Context* context;
	const Kernel* kernel;
	dim3 grid, block;
	std::vector<char> arguments;
	std::vector<size_t> offsets;
	Result error;

	void check_pointers() const {
		for (size_t i = 0; i < offsets.size(); i++) {
			uint64_t p = 0;
			if (kernel->sizes[i] != sizeof p) continue;
			memcpy(&p, arguments.data() + offsets[i], sizeof p);
			// A number may be an address, too. It is one for sure if it is that of an allocation.
			if (!p || (!kernel->pointers[i] && (p >> 32 == 0 || (!find(p) && !freed(p))))) continue;
			auto what = std::string("kernel ") + kernel->name + ", argument " + std::to_string(i);
			on_device(what.c_str(), p, 0, context);
		}
	}

	void run() const {
		if (error) {
			context->sticky = error;
			return;
		}
		check_pointers();
		last_kernel = kernel->name;
		struct sigaction action = {};
		action.sa_sigaction = on_signal;
		action.sa_flags = SA_SIGINFO | SA_ONSTACK;
		for (int n : {SIGSEGV, SIGBUS, SIGFPE}) sigaction(n, &action, &old_action[n]);
		kernel_thread = pthread_self();
		in_kernel = true;
		run_kernel(*kernel, arguments.data(), offsets.data(), grid, block);
		in_kernel = false;
		for (int n : {SIGSEGV, SIGBUS, SIGFPE}) sigaction(n, &old_action[n], nullptr);
	}
};

// pack copies the arguments of a launch.
Result pack(Launch& l, void** parameters, void** extra) {
	size_t at = 0;
	const char* buffer = nullptr;
	size_t size = 0;
	for (; extra && *extra; extra += 2) {
		if (*extra == reinterpret_cast<void*>(1)) buffer = static_cast<const char*>(extra[1]);
		else if (*extra == reinterpret_cast<void*>(2)) size = *static_cast<size_t*>(extra[1]);
		else return invalid_value;
	}
	for (size_t i = 0; i < l.kernel->sizes.size(); i++) {
		size_t n = l.kernel->sizes[i], a = l.kernel->alignments[i];
		at = (at + a - 1) / a * a;
		l.offsets.push_back(at);
		l.arguments.resize(at + n);
		if (parameters && !parameters[i]) return invalid_value;
		if (parameters) memcpy(l.arguments.data() + at, parameters[i], n);
		at += n;
	}
	if (parameters || at == 0) return ok;
	if (!buffer || size < at) return invalid_value;
	memcpy(l.arguments.data(), buffer, at);
	return ok;
}

void destroy(Context* c) {
	run_all(c);
	auto& lost_here = lost[c->device];
	Live gone;
	for (auto i = allocations.begin(); i != allocations.end();) {
		auto a = (i++)->second;
		if (a.context != c) continue;
		(a.kind == device_memory ? gone.device_bytes : gone.host_bytes) += a.kind == registered ? 0 : a.size;
		release(uint64_t(a.begin));
	}
	for (auto& a : kept) check_kept(a);
	for (auto& s : c->streams) gone.streams += !s->destroyed;
	for (auto e : events) gone.events += e->context == c;
	for (auto m : modules) gone.modules += m->context == c && !m->unloaded;
	for (auto i = events.begin(); i != events.end();) i = (*i)->context == c ? events.erase(i) : std::next(i);
	for (auto i = modules.begin(); i != modules.end();) i = (*i)->context == c ? modules.erase(i) : std::next(i);
	c->streams.clear();
	c->destroyed = true; // the struct stays: other threads may have it
	contexts.erase(c);
	if (c->sticky) return;
	lost_here.device_bytes += gone.device_bytes;
	lost_here.host_bytes += gone.host_bytes;
	lost_here.streams += gone.streams;
	lost_here.events += gone.events;
	lost_here.modules += gone.modules;
}

Result load(void** module, const char* image, unsigned n, int* options, void** values) {
	ENTER
	char* log = nullptr;
	size_t size = 0;
	for (unsigned i = 0; i < n; i++) {
		if (options[i] == 5) log = static_cast<char*>(values[i]);
		if (options[i] == 6) size = size_t(uint32_t(uint64_t(values[i])));
	}
	auto complain = [&](const char* text) {
		if (log && size) snprintf(log, size, "%s", text);
	};
	complain("");
	if (Result r = fault("load")) {
		complain("ptxas application ptx input, line 1; fatal   : the emulated driver was told to fail");
		return r;
	}
	if (!image) return invalid_value;
	if (!strstr(image, ".version") || !strstr(image, ".target")) {
		complain("ptxas application ptx input, line 1; fatal   : Missing .version directive at start of file '<input>'");
		return invalid_ptx;
	}
	auto m = new Module{c, image};
	modules.insert(m);
	*module = m;
	return ok;
}

// entry reports whether PTX has a kernel of this name.
bool entry(const std::string& image, const std::string& name) {
	for (size_t at = 0; (at = image.find(".entry " + name, at)) != std::string::npos; at++) {
		char behind = image[std::min(at + 7 + name.size(), image.size() - 1)];
		if (!isalnum(behind) && behind != '_' && behind != '$') return true;
	}
	return false;
}

Result create(void** context, unsigned flags, int device) {
	if (!initialized) return not_initialized;
	if (device < 0 || device >= devices()) return invalid_device;
	auto c = new Context{device, flags};
	contexts.insert(c);
	*context = c;
	return ok;
}

Event* find_event(void* handle) {
	auto i = events.find(static_cast<Event*>(handle));
	return i == events.end() ? nullptr : *i;
}

const int attributes[][2] = {
	{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647}, {6, 65535}, {7, 65535}, {8, max_dynamic_shared}, {9, 65536}, {10, 32},
	{11, 2147483647}, {12, 65536}, {13, 1000000}, {14, 512}, {15, 1}, {16, 4}, {19, 1}, {31, 1}, {36, 1000000}, {37, 64}, {38, 4 << 20},
	{39, 2048}, {40, 2}, {41, 1}, {75, 8}, {76, 0}, {78, 1}, {81, 164 << 10}, {82, 65536}, {97, max_dynamic_shared},
};

} // namespace

void fail(const char* format, ...) {
	char text[2048];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	fprintf(stderr, "emulated driver: %s\n", text);
	fflush(stderr);
	in_kernel = false;
	abort();
}

void add_kernel(Kernel k) {
	std::string name = k.name;
	kernels()[name] = std::move(k);
}

} // namespace rp_emu

using namespace rp_emu;

extern "C" {

int rp_emu_is_emulator(void) { return 1; }

int rp_emu_live(int device, uint64_t* device_bytes, uint64_t* host_bytes, uint64_t* streams, uint64_t* events_, uint64_t* modules_) {
	Lock lock;
	if (device < 0 || device >= devices()) return invalid_device;
	Live l = lost[device];
	for (auto& [p, a] : allocations) {
		if (a.context->device != device || a.kind == registered) continue;
		(a.kind == device_memory ? l.device_bytes : l.host_bytes) += a.size;
	}
	for (auto c : contexts)
		if (c->device == device)
			for (auto& s : c->streams) l.streams += !s->destroyed;
	for (auto e : events) l.events += e->context->device == device;
	for (auto m : modules) l.modules += m->context->device == device && !m->unloaded;
	*device_bytes = l.device_bytes;
	*host_bytes = l.host_bytes;
	*streams = l.streams;
	*events_ = l.events;
	*modules_ = l.modules;
	return ok;
}

void rp_emu_check(void) {
	Lock lock;
	written = true;
	check_guards();
	for (auto& a : kept) check_kept(a);
}

// rp_emu_missing is called by functions of the driver that are not emulated.
int rp_emu_missing(const char* name) {
	fprintf(stderr, "emulated driver: %s is not emulated\n", name);
	return 34;
}

// The driver, and its devices.

int cuInit(unsigned) {
	Lock lock;
	read_faults();
	for (auto& f : faults)
		if (f.kind == "init") return f.code;
	if (devices() == 0) return no_device;
	initialized = true;
	return ok;
}

int cuDriverGetVersion(int* v) {
	*v = int(number_of("RP_EMU_DRIVER", 13000));
	return ok;
}

int cuGetErrorName(int code, const char** text) {
	auto i = error_texts.find(code);
	*text = i == error_texts.end() ? nullptr : i->second.first;
	return *text ? ok : invalid_value;
}

int cuGetErrorString(int code, const char** text) {
	auto i = error_texts.find(code);
	*text = i == error_texts.end() ? nullptr : i->second.second;
	return *text ? ok : invalid_value;
}

int cuDeviceGetCount(int* n) {
	Lock lock;
	if (!initialized) return not_initialized;
	*n = devices();
	return ok;
}

int cuDeviceGet(int* device, int n) {
	Lock lock;
	if (!initialized) return not_initialized;
	if (n < 0 || n >= devices()) return invalid_device;
	*device = n;
	return ok;
}

int cuDeviceGetName(char* name, int size, int device) {
	if (device < 0 || device >= devices()) return invalid_device;
	snprintf(name, size_t(size), "Emulated device %d", device);
	return ok;
}

int cuDeviceGetUuid(char* id, int device) {
	if (device < 0 || device >= devices()) return invalid_device;
	memset(id, 0xe0 + device, 16);
	return ok;
}
int cuDeviceGetUuid_v2(char* id, int device) { return cuDeviceGetUuid(id, device); }

int cuDeviceTotalMem_v2(size_t* n, int device) {
	if (device < 0 || device >= devices()) return invalid_device;
	*n = total_memory();
	return ok;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
	if (device < 0 || device >= devices()) return invalid_device;
	if (attribute < 1 || attribute > 200) return invalid_value;
	*value = attribute == 33 ? device : 0;
	for (auto& a : attributes)
		if (a[0] == attribute) *value = a[1];
	return ok;
}

int cuDeviceComputeCapability(int* major, int* minor, int device) {
	if (device < 0 || device >= devices()) return invalid_device;
	*major = 8;
	*minor = 0;
	return ok;
}

int cuDeviceCanAccessPeer(int* can, int, int) {
	*can = 0;
	return ok;
}

// Contexts.

int cuCtxCreate_v2(void** context, unsigned flags, int device) {
	Lock lock;
	if (Result r = create(context, flags, device)) return r;
	stack().push_back(static_cast<Context*>(*context));
	return ok;
}

int cuCtxDestroy_v2(void* context) {
	Lock lock;
	auto c = static_cast<Context*>(context);
	if (!contexts.count(c)) return invalid_context;
	destroy(c);
	auto& s = stack();
	if (!s.empty() && s.back() == c) s.pop_back();
	return ok;
}

int cuCtxSetCurrent(void* context) {
	Lock lock;
	auto c = static_cast<Context*>(context);
	if (c && !contexts.count(c)) return invalid_context;
	auto& s = stack();
	if (!s.empty()) s.pop_back();
	if (c) s.push_back(c);
	return ok;
}

int cuCtxGetCurrent(void** context) {
	Lock lock;
	if (!initialized) return not_initialized;
	*context = stack().empty() ? nullptr : stack().back();
	return ok;
}

int cuCtxPushCurrent_v2(void* context) {
	Lock lock;
	auto c = static_cast<Context*>(context);
	if (!contexts.count(c)) return invalid_context;
	stack().push_back(c);
	return ok;
}

int cuCtxPopCurrent_v2(void** context) {
	Lock lock;
	auto& s = stack();
	if (s.empty()) return invalid_context;
	if (context) *context = s.back();
	s.pop_back();
	return ok;
}

int cuCtxGetDevice(int* device) {
	ENTER
	*device = c->device;
	return ok;
}

int cuCtxGetFlags(unsigned* flags) {
	ENTER
	*flags = c->flags;
	return ok;
}

int cuCtxGetApiVersion(void*, unsigned* v) {
	*v = 3020;
	return ok;
}

int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
	ENTER
	*least = 0;
	*greatest = -5;
	return ok;
}

int cuCtxSynchronize(void) {
	ENTER
	run_all(c);
	return finished(c);
}

int cuDevicePrimaryCtxRetain(void** context, int device) {
	Lock lock;
	auto& p = primaries[device];
	if (!p.first) {
		void* made = nullptr;
		if (Result r = create(&made, 0, device)) return r;
		p.first = static_cast<Context*>(made);
	}
	p.second++;
	*context = p.first;
	return ok;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
	Lock lock;
	auto& p = primaries[device];
	if (!p.first) return invalid_context;
	if (--p.second == 0) {
		destroy(p.first);
		p.first = nullptr;
	}
	return ok;
}

int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
	Lock lock;
	*flags = 0;
	*active = primaries[device].first != nullptr;
	return ok;
}

int cuDevicePrimaryCtxSetFlags_v2(int, unsigned) { return ok; }

// Memory.

int cuMemGetInfo_v2(size_t* free, size_t* total) {
	ENTER
	*total = total_memory();
	*free = *total - std::min<size_t>(*total, used[c->device]);
	return ok;
}

int cuMemAlloc_v2(Pointer* p, size_t n) {
	ENTER
	if (Result r = fault("alloc")) return r;
	if (n == 0) return invalid_value;
	if (n > total_memory() || used[c->device] > total_memory() - n) return out_of_memory;
	used[c->device] += n;
	*p = Pointer(allocate(device_memory, n, c).begin);
	return ok;
}

int cuMemFree_v2(Pointer p) {
	ENTER
	if (!p) return ok;
	auto i = allocations.find(p);
	if (i == allocations.end() || i->second.kind != device_memory) {
		fprintf(stderr, "emulated driver: freed memory that is not there: %s\n", describe(p).c_str());
		return invalid_value;
	}
	on_device("freeing", p, 0, c);
	run_all(c);
	release(p);
	return finished(c);
}

int cuMemHostAlloc(void** p, size_t n, unsigned) {
	ENTER
	if (Result r = fault("hostalloc")) return r;
	if (n == 0) return invalid_value;
	*p = allocate(pinned, n, c).begin;
	return ok;
}

int cuMemAllocHost_v2(void** p, size_t n) { return cuMemHostAlloc(p, n, 0); }

int cuMemFreeHost(void* p) {
	ENTER
	if (!p) return ok;
	auto i = allocations.find(uint64_t(p));
	if (i == allocations.end() || i->second.kind != pinned) {
		fprintf(stderr, "emulated driver: freed pinned memory that is not there: %s\n", describe(uint64_t(p)).c_str());
		return invalid_value;
	}
	for (auto each : std::set<Context*>(contexts)) run_all(each);
	release(uint64_t(p));
	return finished(c);
}

int cuMemHostGetDevicePointer_v2(Pointer* device, void* p, unsigned) {
	ENTER
	auto a = find(uint64_t(p));
	if (!a || a->kind == device_memory) return invalid_value;
	*device = uint64_t(p);
	return ok;
}

int cuMemHostGetFlags(unsigned* flags, void* p) {
	ENTER
	auto a = find(uint64_t(p));
	if (!a || a->kind == device_memory) return invalid_value;
	*flags = 3;
	return ok;
}

int cuMemHostRegister_v2(void* p, size_t n, unsigned) {
	ENTER
	if (Result r = fault("hostalloc")) return r;
	if (n == 0) return invalid_value;
	auto after = allocations.lower_bound(uint64_t(p) + n);
	if (after != allocations.begin() && std::prev(after)->second.end() > uint64_t(p)) return already_registered;
	allocations[uint64_t(p)] = {registered, nullptr, static_cast<char*>(p), n, c};
	return ok;
}

int cuMemHostUnregister(void* p) {
	ENTER
	auto i = allocations.find(uint64_t(p));
	if (i == allocations.end() || i->second.kind != registered) return not_registered;
	for (auto each : std::set<Context*>(contexts)) run_all(each);
	release(uint64_t(p));
	return finished(c);
}

int cuMemGetAddressRange_v2(Pointer* begin, size_t* n, Pointer p) {
	ENTER
	auto a = find(p);
	if (!a || p == a->end()) return not_found;
	if (begin) *begin = uint64_t(a->begin);
	if (n) *n = a->size;
	return ok;
}

int cuMemcpyHtoD_v2(Pointer to, const void* from, size_t n) { return copy(to_device, to, uint64_t(from), n); }
int cuMemcpyDtoH_v2(void* to, Pointer from, size_t n) { return copy(to_host, uint64_t(to), from, n); }
int cuMemcpyDtoD_v2(Pointer to, Pointer from, size_t n) { return copy_later(in_device, to, from, n, nullptr); }
int cuMemcpyHtoDAsync_v2(Pointer to, const void* from, size_t n, void* s) { return copy_later(to_device, to, uint64_t(from), n, s); }
int cuMemcpyDtoHAsync_v2(void* to, Pointer from, size_t n, void* s) { return copy_later(to_host, uint64_t(to), from, n, s); }
int cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t n, void* s) { return copy_later(in_device, to, from, n, s); }

// These find out which side is what.
static Direction direction(Pointer to, Pointer from) {
	Lock lock;
	auto a = find(to), b = find(from);
	return !a ? to_host : !b ? to_device : in_device;
}
int cuMemcpy(Pointer to, Pointer from, size_t n) { return copy(direction(to, from), to, from, n); }
int cuMemcpyAsync(Pointer to, Pointer from, size_t n, void* s) { return copy_later(direction(to, from), to, from, n, s); }

int cuMemsetD8_v2(Pointer to, unsigned char v, size_t n) { return set(to, v, n, nullptr); }
int cuMemsetD16_v2(Pointer to, unsigned short v, size_t n) { return set(to, v, n, nullptr); }
int cuMemsetD32_v2(Pointer to, unsigned v, size_t n) { return set(to, v, n, nullptr); }
int cuMemsetD8Async(Pointer to, unsigned char v, size_t n, void* s) { return set(to, v, n, s); }
int cuMemsetD16Async(Pointer to, unsigned short v, size_t n, void* s) { return set(to, v, n, s); }
int cuMemsetD32Async(Pointer to, unsigned v, size_t n, void* s) { return set(to, v, n, s); }

// Streams and events.

int cuStreamCreate(void** stream, unsigned flags) {
	ENTER
	c->streams.push_back(std::make_unique<Stream>(Stream{c, !(flags & 1)}));
	*stream = c->streams.back().get();
	return ok;
}
int cuStreamCreateWithPriority(void** stream, unsigned flags, int) { return cuStreamCreate(stream, flags); }

int cuStreamDestroy_v2(void* stream) {
	ENTER
	STREAM(stream)
	if (s == &c->null) return invalid_handle;
	s->destroyed = true; // what it has to do is done later
	return ok;
}

int cuStreamSynchronize(void* stream) {
	ENTER
	STREAM(stream)
	if (s == &c->null) run_blocking(c);
	else run_all(s);
	return finished(c);
}

// A program that asks again and again sees time pass: each time one operation is done.
int cuStreamQuery(void* stream) {
	ENTER
	STREAM(stream)
	if (s->queue.empty()) return finished(c);
	run_next(s);
	return c->sticky ? c->sticky : not_ready;
}

int cuStreamWaitEvent(void* stream, void* event, unsigned) {
	ENTER
	STREAM(stream)
	auto e = find_event(event);
	if (!e) return invalid_handle;
	if (e->last && !e->last->done && e->last->stream != s) enqueue(s, {"wait", nullptr, nullptr, e->last});
	return ok;
}

int cuStreamGetFlags(void* stream, unsigned* flags) {
	ENTER
	STREAM(stream)
	*flags = s == &c->null || s->blocking ? 0 : 1;
	return ok;
}

int cuStreamGetPriority(void* stream, int* priority) {
	ENTER
	STREAM(stream)
	*priority = 0;
	return ok;
}

int cuEventCreate(void** event, unsigned flags) {
	ENTER
	auto e = new Event{c, flags, nullptr};
	events.insert(e);
	*event = e;
	return ok;
}

int cuEventDestroy_v2(void* event) {
	ENTER
	auto e = find_event(event);
	if (!e) return invalid_handle;
	events.erase(e);
	delete e;
	return ok;
}

int cuEventRecord(void* event, void* stream) {
	ENTER
	STREAM(stream)
	auto e = find_event(event);
	if (!e || e->context != c) return invalid_handle;
	e->last = std::make_shared<Record>(Record{s});
	enqueue(s, {"record", nullptr, e->last, nullptr});
	return ok;
}

int cuEventSynchronize(void* event) {
	ENTER
	auto e = find_event(event);
	if (!e) return invalid_handle;
	if (e->last) run_until(e->last);
	return finished(c);
}

int cuEventQuery(void* event) {
	ENTER
	auto e = find_event(event);
	if (!e) return invalid_handle;
	if (!e->last || e->last->done) return finished(c);
	run_next(e->last->stream);
	return c->sticky ? c->sticky : not_ready;
}

int cuEventElapsedTime(float* ms, void* from, void* to) {
	ENTER
	auto a = find_event(from), b = find_event(to);
	if (!a || !b || !a->last || !b->last || ((a->flags | b->flags) & 2)) return invalid_handle;
	if (!a->last->done || !b->last->done) return not_ready;
	*ms = float(b->last->time - a->last->time);
	return ok;
}
int cuEventElapsedTime_v2(float* ms, void* from, void* to) { return cuEventElapsedTime(ms, from, to); }

// Modules and kernels.

int cuModuleLoadData(void** module, const void* image) { return load(module, static_cast<const char*>(image), 0, nullptr, nullptr); }
int cuModuleLoadDataEx(void** module, const void* image, unsigned n, int* options, void** values) {
	return load(module, static_cast<const char*>(image), n, options, values);
}

int cuModuleUnload(void* module) {
	ENTER
	auto m = static_cast<Module*>(module);
	if (!modules.count(m) || m->unloaded) return invalid_handle;
	run_all(c);
	m->unloaded = true;
	return finished(c);
}

int cuModuleGetFunction(void** function, void* module, const char* name) {
	ENTER
	auto m = static_cast<Module*>(module);
	if (!modules.count(m) || m->unloaded) return invalid_handle;
	if (!entry(m->image, name)) return not_found;
	auto k = kernels().find(name);
	if (k == kernels().end()) {
		fprintf(stderr, "emulated driver: it was built without kernel %s\n", name);
		return not_found;
	}
	auto& f = functions[{m, name}];
	if (!f) f = std::make_unique<Function>(Function{m, &k->second});
	known_functions.insert(f.get());
	*function = f.get();
	return ok;
}

int cuFuncGetAttribute(int* value, int attribute, void* function) {
	ENTER
	auto f = static_cast<Function*>(function);
	if (!known_functions.count(f)) return invalid_handle;
	static const int values[] = {1024, 0, 0, 0, 32, 80, 80, 0};
	if (attribute < 0 || attribute > 15) return invalid_value;
	*value = attribute < 8 ? values[attribute] : attribute == 8 ? f->dynamic_shared : 0;
	return ok;
}

int cuFuncSetAttribute(void* function, int attribute, int value) {
	ENTER
	auto f = static_cast<Function*>(function);
	if (!known_functions.count(f)) return invalid_handle;
	if (attribute == 8 && (value < 0 || value > int(max_dynamic_shared))) return invalid_value;
	if (attribute == 8) f->dynamic_shared = value;
	return ok;
}

int cuFuncSetCacheConfig(void*, int) { return ok; }

int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void* stream,
	void** parameters, void** extra) {
	ENTER
	STREAM(stream)
	auto f = static_cast<Function*>(function);
	if (!known_functions.count(f) || !modules.count(f->module) || f->module->unloaded || f->module->context != c) return invalid_handle;
	if (Result r = fault("launch", f->kernel->name)) return r;
	if (!gx || !gy || !gz || !bx || !by || !bz || gx > 2147483647u || gy > 65535 || gz > 65535) return invalid_value;
	if (bx > 1024 || by > 1024 || bz > 64 || uint64_t(bx) * by * bz > 1024 || shared > unsigned(f->dynamic_shared)) return invalid_value;
	Launch l{c, f->kernel, {gx, gy, gz}, {bx, by, bz}, {}, {}, ok};
	if (Result r = pack(l, parameters, extra)) return r;
	l.check_pointers();
	l.error = fault("async", f->kernel->name);
	enqueue(s, {f->kernel->name, [l = std::move(l)] { l.run(); }, nullptr, nullptr});
	return ok;
}

} // extern "C"
