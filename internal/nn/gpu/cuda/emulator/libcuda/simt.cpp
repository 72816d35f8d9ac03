// The threads of a block as fibers: see simt.hpp.
#include "simt.hpp"
#include "emulator.hpp"

#include <csetjmp>
#include <link.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace rp_emu {

Thread* self;
dim3 block_index, block_size, grid_size;

void schedule();

namespace {

constexpr int max_threads = 1024, max_warps = max_threads / 32;
constexpr size_t stack_size = 64 << 10, guard_size = 4096;

enum { ready, at_barrier, at_warp, done };

// A fiber runs one thread of the block after the other, until one waits. Then another fiber goes on, and the waiting thread has its own.
struct Fiber {
	jmp_buf at;
	bool started = false;
	ucontext_t context;
	char* stack = nullptr;
};

Fiber main_fiber, *current = &main_fiber;
std::vector<Fiber*> idle;

Thread threads[max_threads];
int count, next, live, waiting; // threads of the block; the next to begin; not done; at the block's barrier
int predicates, how_, barrier_result;
bool descending;
unsigned warp_live[max_warps], warp_waiting[max_warps];

Thread* queue[max_threads]; // threads that can go on
int queue_head, queue_length;

const Kernel* kernel;
const char* arguments;
const size_t* offsets;

void push(Thread* t) {
	t->state = ready;
	queue[(queue_head + queue_length++) % max_threads] = t;
}

[[noreturn]] void stuck(const char* why) {
	fail("kernel %s, block (%u, %u, %u): %s", kernel->name, block_index.x, block_index.y, block_index.z, why);
}

// finish_warp ends a warp's operations for which all their lanes wait.
bool finish_warp(int w) {
	bool any = false;
	unsigned todo = warp_waiting[w];
	Thread* lanes = threads + 32 * w;
	while (todo) {
		Thread* first = lanes + __builtin_ctz(todo);
		unsigned group = first->mask & warp_live[w];
		bool complete = (group & ~warp_waiting[w]) == 0;
		unsigned ballots = 0;
		for (unsigned rest = group & todo; rest && complete; rest &= rest - 1) {
			Thread* t = lanes + __builtin_ctz(rest);
			if (t->mask != first->mask) complete = false;
			else if (t->operation != first->operation) stuck("lanes of a warp meet at different operations");
			else if (t->operation == ballot && t->value) ballots |= 1u << (t->number & 31);
		}
		if (!complete) {
			todo &= todo - 1;
			continue;
		}
		uint64_t given[32];
		if (first->operation == shuffle)
			for (unsigned rest = group; rest; rest &= rest - 1) given[__builtin_ctz(rest)] = lanes[__builtin_ctz(rest)].value;
		for (int i = 0; i < 32; i++) {
			int l = descending ? 31 - i : i;
			if (!(group >> l & 1)) continue;
			Thread* t = lanes + l;
			if (t->operation == ballot) t->value = ballots;
			// What a lane that does not take part gives is not defined: not a number, here.
			if (t->operation == shuffle) t->value = group >> (t->source & 31) & 1 ? given[t->source & 31] : ~uint64_t(0);
			push(t);
		}
		todo &= ~group;
		warp_waiting[w] &= ~group;
		any = true;
	}
	return any;
}

// release lets threads go on that have waited for others.
void release() {
	bool any = false;
	int warps = (count + 31) / 32;
	for (int i = 0; i < warps; i++) {
		int w = descending ? warps - 1 - i : i;
		if (warp_waiting[w] && finish_warp(w)) any = true;
	}
	if (any) return;
	if (waiting < live) stuck("threads wait for each other: some at __syncthreads, others in a warp, or for lanes that do not come");
	barrier_result = how_ == 1 ? predicates == live : how_ == 2 ? predicates > 0 : predicates;
	waiting = predicates = 0;
	for (int i = 0; i < count; i++) {
		Thread* t = threads + (descending ? count - 1 - i : i);
		if (t->state == at_barrier) push(t);
	}
}

void run_threads() {
	for (;;) {
		while (next < count) {
			int i = next++;
			Thread* t = self = threads + (descending ? count - 1 - i : i);
			t->fiber = current;
			kernel->call(arguments, offsets);
			t = self;
			t->state = done;
			live--;
			warp_live[t->number / 32] &= ~(1u << (t->number & 31));
		}
		idle.push_back(current);
		schedule();
	}
}

Fiber* idle_fiber() {
	if (idle.empty()) {
		auto f = new Fiber;
		f->stack = static_cast<char*>(mmap(nullptr, guard_size + stack_size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
		if (f->stack == MAP_FAILED) fail("no memory for a thread's stack");
		mprotect(f->stack, guard_size, PROT_NONE);
		return f;
	}
	Fiber* f = idle.back();
	idle.pop_back();
	return f;
}

Fiber* choose() {
	for (;;) {
		if (next < count) return idle_fiber();
		if (queue_length) {
			self = queue[queue_head];
			queue_head = (queue_head + 1) % max_threads;
			queue_length--;
			return static_cast<Fiber*>(self->fiber);
		}
		if (!live) return &main_fiber;
		release();
	}
}

} // namespace

__attribute__((noinline)) void schedule() {
	Fiber* to = choose();
	if (to == current) return;
	if (_setjmp(current->at)) return;
	current = to;
	if (to == &main_fiber || to->started) _longjmp(to->at, 1);
	to->started = true;
	getcontext(&to->context);
	to->context.uc_stack.ss_sp = to->stack + guard_size;
	// Stacks end at different places of their pages, so that they do not meet in the same lines of the cache.
	static unsigned number;
	to->context.uc_stack.ss_size = stack_size - 448 * (number++ % 16);
	to->context.uc_link = nullptr;
	makecontext(&to->context, run_threads, 0);
	setcontext(&to->context);
}

int block_barrier(int predicate, int how) {
	self->state = at_barrier;
	waiting++;
	predicates += predicate != 0;
	how_ = how;
	schedule();
	return barrier_result;
}

uint64_t warp_operation(int operation, unsigned mask, uint64_t value, int source) {
	Thread* t = self;
	if (!(mask >> (t->number & 31) & 1)) stuck("a lane takes part in an operation of its warp that its mask does not name");
	t->state = at_warp;
	t->operation = operation;
	t->mask = mask;
	t->value = value;
	t->source = source;
	warp_waiting[t->number / 32] |= 1u << (t->number & 31);
	schedule();
	return t->value;
}

namespace {

// The shared memory of all kernels is this library's memory of the thread, which lies at one distance from the thread's pointer.
struct SharedMemory {
	ptrdiff_t distance = 0;
	size_t size = 0;

	SharedMemory() { dl_iterate_phdr(find, this); }

	static int find(dl_phdr_info* info, size_t, void* to) {
		auto here = reinterpret_cast<uintptr_t>(&threads) - info->dlpi_addr;
		bool ours = false;
		for (int i = 0; i < info->dlpi_phnum; i++) {
			auto& h = info->dlpi_phdr[i];
			ours |= h.p_type == PT_LOAD && here >= h.p_vaddr && here < h.p_vaddr + h.p_memsz;
		}
		for (int i = 0; ours && i < info->dlpi_phnum; i++) {
			auto& h = info->dlpi_phdr[i];
			if (h.p_type != PT_TLS || !info->dlpi_tls_data) continue;
			auto s = static_cast<SharedMemory*>(to);
			s->distance = static_cast<char*>(info->dlpi_tls_data) - static_cast<char*>(__builtin_thread_pointer());
			s->size = h.p_memsz;
		}
		return ours;
	}

	void poison() const {
		if (size) fill(static_cast<char*>(__builtin_thread_pointer()) + distance, size, shared_pattern);
	}
};

} // namespace

void run_kernel(const Kernel& k, const char* packed, const size_t* at, dim3 grid, dim3 block) {
	static SharedMemory shared;
	const char* order = getenv("RP_EMU_THREADS");
	descending = order && !strcmp(order, "descending");
	kernel = &k;
	arguments = packed;
	offsets = at;
	block_size = block;
	grid_size = grid;
	count = int(block.x * block.y * block.z);
	for (int i = 0; i < count; i++) {
		unsigned n = unsigned(i);
		threads[i].number = i;
		threads[i].index = {n % block.x, n / block.x % block.y, n / (block.x * block.y)};
	}
	uint64_t blocks = uint64_t(grid.x) * grid.y * grid.z;
	for (uint64_t i = 0; i < blocks; i++) {
		uint64_t b = descending ? blocks - 1 - i : i;
		block_index = {unsigned(b % grid.x), unsigned(b / grid.x % grid.y), unsigned(b / grid.x / grid.y)};
		if (i < 8 || i % 16 == 0) shared.poison();
		live = count;
		next = waiting = predicates = queue_length = 0;
		for (int w = 0; w < (count + 31) / 32; w++) {
			int lanes = std::min(32, count - 32 * w);
			warp_live[w] = lanes == 32 ? ~0u : (1u << lanes) - 1;
			warp_waiting[w] = 0;
		}
		schedule();
	}
	kernel = nullptr;
	self = nullptr;
}

} // namespace rp_emu
