// A shipped guest in C, without a library: the pods of a cluster, and how often
// their containers have restarted. See ../../../host/ABI.md for what it imports.

#define IMPORT(name) __attribute__((import_module("k8s"), import_name(#name)))
#define KEY(text) text, sizeof text - 1

typedef unsigned char byte;
typedef unsigned int u32;
typedef unsigned long long u64;

IMPORT(input) int input(byte *into, u32 size);
IMPORT(list) int list(const byte *request, u32 size);
IMPORT(next) int next(int handle, byte *into, u32 size);
IMPORT(emit) int emit(int what, const byte *object, u32 size);

// The manifest is a section of the module, so that nothing is needed but clang.
__asm__(".section .custom_section.k8s.manifest,\"\",@\n"
	".incbin \"manifest.json\"\n");

enum { PAGE = 65536 };

// span is a piece of memory that is read from its start.
typedef struct {
	const byte *at, *end;
} span;

// out is what is being written. What does not fit is refused by done.
static byte out[16384];
static u32 size;

static void put(byte b) {
	if (size < sizeof out) out[size] = b;
	size++;
}

static void text(const char *s) {
	while (*s) put((byte)*s++);
}

static void raw(span s) {
	while (s.at < s.end) put(*s.at++);
}

static void quoted(span s) {
	put('"');
	for (; s.at < s.end; s.at++) {
		byte b = *s.at;
		if (b < 0x20) {
			text("\\u00");
			put("0123456789abcdef"[b >> 4]);
			put("0123456789abcdef"[b & 15]);
			continue;
		}
		if (b == '"' || b == '\\') put('\\');
		put(b);
	}
	put('"');
}

static void number(u64 n) {
	if (n > 9) number(n / 10);
	put((byte)('0' + n % 10));
}

static int done(void) { return size <= sizeof out; }

// The memory from the end of this program's own to the end of all is one buffer,
// for what the host gives. It grows with what comes.
extern byte __heap_base;

static u32 room(void) { return (u32)__builtin_wasm_memory_size(0) * PAGE - (u32)&__heap_base; }

static int grow(u32 bytes) {
	u32 have = room();
	return bytes <= have || __builtin_wasm_memory_grow(0, (bytes - have + PAGE - 1) / PAGE) != (u32)-1;
}

// The wire format of protobuf: numbers of seven bits a byte, and fields, which
// are a number (0), eight bytes (1), bytes with their length (2) or four (5).

static int varint(span *s, u64 *n) {
	*n = 0;
	for (u32 shift = 0; s->at < s->end && shift < 64; shift += 7) {
		byte b = *s->at++;
		*n |= (u64)(b & 0x7f) << shift;
		if (b < 0x80) return 1;
	}
	return 0;
}

// field reads one field: its number, and its value as a number or as bytes. It is
// 0 at the end, and -1 where the bytes are no message.
static int field(span *s, u64 *n, span *bytes) {
	u64 key, length;
	if (s->at == s->end) return 0;
	if (!varint(s, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) return -1;
	switch (key & 7) {
	case 0:
		return varint(s, n) ? (int)(key >> 3) : -1;
	case 1: length = 8; break;
	case 5: length = 4; break;
	case 2:
		if (!varint(s, &length)) return -1;
		break;
	default: return -1;
	}
	if (length > (u64)(s->end - s->at)) return -1;
	*bytes = (span){s->at, s->at + length};
	s->at += length;
	return (int)(key >> 3);
}

// in finds a string of the call's input: {"op":"…","in":{"namespace":"…"}}. It is
// the string as JSON has it, in its quotes.
static span in(span s, const char *key, u32 length) {
	u32 depth = 0;
	for (; s.at < s.end; s.at++) {
		if (*s.at == '{' || *s.at == '[') depth++;
		if (*s.at == '}' || *s.at == ']') depth--;
		if (*s.at != '"') continue;
		const byte *start = s.at++;
		while (s.at < s.end && *s.at != '"') s.at += *s.at == '\\' ? 2 : 1;
		if (depth != 2 || s.at + 2 >= s.end || s.at[1] != ':') continue;
		u32 i = 0;
		while (i < length && start + 1 + i < s.at && start[1 + i] == (byte)key[i]) i++;
		if (i < length || start + 1 + i != s.at || s.at[2] != '"') continue;
		span value = {s.at + 2, s.at + 3};
		while (value.end < s.end && *value.end != '"') value.end += *value.end == '\\' ? 2 : 1;
		value.end++;
		return value.end <= s.end ? value : (span){0, 0};
	}
	return (span){0, 0};
}

// ask lists the pods that the input selects.
static int ask(void) {
	byte *buffer = &__heap_base;
	int n = input(buffer, room());
	if (n > (int)room()) {
		if (!grow((u32)n)) return -2;
		n = input(buffer, room());
	}
	if (n < 0) return n;
	span call = {buffer, buffer + n};
	span namespace = in(call, KEY("namespace")), selector = in(call, KEY("labelSelector"));
	size = 0;
	text("{\"resource\":\"v1/pods\"");
	if (namespace.at) {
		text(",\"namespace\":");
		raw(namespace);
	}
	if (selector.at) {
		text(",\"labelSelector\":");
		raw(selector);
	}
	put('}');
	return done() ? list(out, size) : -2;
}

// restarts adds up the containers' restarts of a PodStatus. Field 8 is its
// containers, 10 those that ran before them; 5 in each the restarts.
static int restarts(span status, u64 *sum) {
	u64 n = 0;
	span container, bytes;
	int f, g;
	while ((f = field(&status, &n, &container)) > 0) {
		if (f != 8 && f != 10) continue;
		while ((g = field(&container, &n, &bytes)) > 0)
			if (g == 5) *sum += n;
		if (g < 0) return 0;
	}
	return f == 0;
}

// pod answers one pod: its metadata (1) has the name (1) and the namespace (3),
// its spec (2) the node (10).
static int pod(span message) {
	u64 n = 0, sum = 0;
	span part, bytes, name = {0, 0}, namespace = {0, 0}, node = {0, 0};
	int f, g;
	while ((f = field(&message, &n, &part)) > 0) {
		if (f == 3 && !restarts(part, &sum)) return 0;
		if (f != 1 && f != 2) continue;
		while ((g = field(&part, &n, &bytes)) > 0) {
			if (f == 1 && g == 1) name = bytes;
			if (f == 1 && g == 3) namespace = bytes;
			if (f == 2 && g == 10) node = bytes;
		}
		if (g < 0) return 0;
	}
	if (f < 0) return 0;
	size = 0;
	text("{\"namespace\":");
	quoted(namespace);
	text(",\"name\":");
	quoted(name);
	if (node.at < node.end) {
		text(",\"node\":");
		quoted(node);
	}
	text(",\"restarts\":");
	number(sum);
	put('}');
	return done() && emit(0, out, size) == 0;
}

// handle answers the one op. What is not 0 is the last failure.
__attribute__((export_name("handle"))) int handle(void) {
	int stream = ask();
	if (stream < 0) return 1;
	byte *buffer = &__heap_base;
	for (;;) {
		int n = next(stream, buffer, room());
		if (n == -1) return 0;
		if (n < 0) return 1;
		if ((u32)n > room()) {
			if (!grow((u32)n)) return 1;
			continue;
		}
		if (!pod((span){buffer, buffer + n})) return 1;
	}
}
