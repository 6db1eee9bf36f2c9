package inprocess

import (
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// The errors of Redis, as its clients know them.
const (
	errSyntax    = "ERR syntax error"
	errFieldType = "ERR Invalid bitfield type. Use something like i16 u8. " +
		"Note that u64 is not supported but i64 is."
	errOffset         = "ERR bit offset is not an integer or out of range"
	errValue          = "ERR value is not an integer or out of range"
	errOverflowPolicy = "ERR Invalid OVERFLOW type specified"
	errReadOnly       = "ERR BITFIELD_RO only supports the GET subcommand"
)

// An operation is one subcommand of BITFIELD.
type operation struct {
	kind     string // GET, SET or INCRBY
	signed   bool
	bits     int64 // 1 to 64, or to 63 if not signed
	offset   int64 // of the highest bit, from the beginning of the string
	value    int64
	overflow string // WRAP, SAT or FAIL
}

// bitfield is BITFIELD key [GET type offset | SET type offset value | INCRBY type offset increment |
// OVERFLOW WRAP|SAT|FAIL]..., and BITFIELD_RO, which only has GET (redis.io/docs/latest/commands/bitfield).
func (s *Server) bitfield(c *server.Peer, cmd string, args []string) {
	if len(args) == 0 {
		_, _ = s.call(c.Ctx, "GET") // fails alike, and spoils a transaction alike
		c.WriteError("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
		return
	}
	s.atomically(c, cmd, args, func(context any) {
		ops, problem := parseOperations(args[1:])
		end := int64(0) // of what is written, in bytes
		for _, op := range ops {
			if op.kind != "GET" {
				end = max(end, (op.offset+op.bits-1)/8+1)
			}
		}
		if problem == "" && end > 0 && cmd == "BITFIELD_RO" {
			problem = errReadOnly
		}
		if problem != "" {
			c.WriteError(problem)
			return
		}
		s.runOperations(c, context, args[0], ops, end)
	})
}

// runOperations applies the operations to the string in order and replies with their results.
func (s *Server) runOperations(c *server.Peer, context any, key string, ops []operation, end int64) {
	reply, err := s.call(context, "GET", key)
	if err != nil {
		c.WriteError(err.Error())
		return
	}
	text, _ := reply.(string)
	data := make([]byte, max(int64(len(text)), end))
	copy(data, text)
	results := make([]*int64, len(ops))
	for i, op := range ops {
		results[i] = op.apply(data)
	}
	if len(data) > 0 && string(data) != text {
		if _, err := s.call(context, "SET", key, string(data), "KEEPTTL"); err != nil {
			c.WriteError(err.Error())
			return
		}
	}
	c.WriteLen(len(results))
	for _, r := range results {
		if r == nil {
			c.WriteNull()
		} else {
			c.WriteRaw(":" + strconv.FormatInt(*r, 10) + "\r\n") // WriteInt takes 32 bits on some machines
		}
	}
}

// parseOperations returns the operations, or what is wrong with the first that is none.
func parseOperations(args []string) (ops []operation, problem string) {
	overflow := "WRAP"
	for len(args) > 0 {
		kind := strings.ToUpper(args[0])
		words := map[string]int{"GET": 3, "SET": 4, "INCRBY": 4, "OVERFLOW": 2}[kind]
		if words == 0 || len(args) < words {
			return nil, errSyntax
		}
		if kind == "OVERFLOW" {
			overflow = strings.ToUpper(args[1])
			if overflow != "WRAP" && overflow != "SAT" && overflow != "FAIL" {
				return nil, errOverflowPolicy
			}
		} else {
			op := operation{kind: kind, overflow: overflow}
			if problem = op.parse(args[1:words]); problem != "" {
				return nil, problem
			}
			ops = append(ops, op)
		}
		args = args[words:]
	}
	return ops, ""
}

// parse reads a type, an offset and, unless the operation is GET, a value.
func (op *operation) parse(words []string) (problem string) {
	letter, digits := "", ""
	if words[0] != "" {
		letter, digits = words[0][:1], words[0][1:]
	}
	bits, ok := parseInt(digits)
	op.signed = letter == "i"
	if !ok || letter != "i" && letter != "u" || bits < 1 || bits > 64 || bits == 64 && !op.signed {
		return errFieldType
	}
	op.bits = bits
	number, counted := strings.CutPrefix(words[1], "#") // counted in fields of this width
	offset, ok := parseInt(number)
	if !ok || offset < 0 || offset>>3 >= maxString {
		return errOffset
	}
	if counted {
		offset *= bits
	}
	if offset>>3 >= maxString {
		return errOffset
	}
	op.offset = offset
	if op.kind == "GET" {
		return ""
	}
	if op.value, ok = parseInt(words[2]); !ok {
		return errValue
	}
	return ""
}

// parseInt accepts what Redis does: decimal digits behind an optional minus, no leading zeros.
func parseInt(s string) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && strconv.FormatInt(v, 10) == s
}

// apply carries the operation out and returns its result; nil if the value did not fit and was not
// to be changed then.
func (op *operation) apply(data []byte) *int64 {
	old := op.read(data)
	if op.kind == "GET" {
		return &old
	}
	base, add := old, op.value
	if op.kind == "SET" {
		base, add = op.value, 0
	}
	value, fits := op.sum(base, add)
	if !fits && op.overflow == "FAIL" {
		return nil
	}
	op.write(data, value)
	if op.kind == "SET" {
		return &old
	}
	return &value
}

// read returns the field. What lies behind the string's end is zero.
func (op *operation) read(data []byte) int64 {
	var v uint64
	for i := op.offset; i < op.offset+op.bits; i++ {
		v <<= 1
		if i/8 < int64(len(data)) {
			v |= uint64(data[i/8]>>(7-i%8)) & 1
		}
	}
	return op.extend(v)
}

func (op *operation) write(data []byte, value int64) {
	for i := range op.bits {
		at := op.offset + i
		mask := byte(0x80) >> (at % 8)
		if value>>(op.bits-1-i)&1 != 0 {
			data[at/8] |= mask
		} else {
			data[at/8] &^= mask
		}
	}
}

// extend returns the number that the lowest bits of v are: they repeat the sign, or zero, above the field.
func (op *operation) extend(v uint64) int64 {
	unused := 64 - op.bits
	if op.signed {
		return int64(v<<unused) >> unused
	}
	return int64(v << unused >> unused)
}

// sum adds to a value. If the result fits the field it is returned, else what the field holds in
// its place: the nearest number that does fit with SAT, the lowest bits otherwise.
func (op *operation) sum(base, add int64) (value int64, fits bool) {
	least, most := op.limits()
	huge := !op.signed && base < 0 // SET takes its value as one without a sign then
	above := huge || base > most || add > 0 && uint64(most)-uint64(base) < uint64(add)
	below := !huge && (base < least || add < 0 && uint64(base)-uint64(least) < -uint64(add))
	switch {
	case !above && !below:
		return base + add, true
	case op.overflow != "SAT":
		return op.extend(uint64(base) + uint64(add)), false
	case above:
		return most, false
	default:
		return least, false
	}
}

// limits returns the least and the greatest number that the field holds.
func (op *operation) limits() (least, most int64) {
	if !op.signed {
		return 0, int64(1)<<op.bits - 1 // 63 bits at most
	}
	most = int64(uint64(1)<<(op.bits-1) - 1)
	return -most - 1, most
}
