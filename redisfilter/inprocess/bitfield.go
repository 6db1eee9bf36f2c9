package inprocess

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// The errors of Redis, as its clients know them.
const (
	errSyntax    = "ERR syntax error"
	errFieldType = "ERR Invalid bitfield type. Use something like i16 u8. " +
		"Note that u64 is not supported but i64 is."
	errOffset   = "ERR bit offset is not an integer or out of range"
	errValue    = "ERR value is not an integer or out of range"
	errReadOnly = "ERR BITFIELD_RO only supports the GET subcommand"
	errQueued   = "ERR the in-process server has no BITFIELD in transactions"
)

// maxString is the length of the longest string, in bytes.
const maxString = 512 << 20

// An operation is one subcommand of BITFIELD.
type operation struct {
	set    bool // else GET
	signed bool
	bits   int64 // 1 to 64, or to 63 if not signed
	offset int64 // of the highest bit, from the beginning of the string
	value  int64
}

// bitfield is BITFIELD key [GET type offset | SET type offset value]..., and BITFIELD_RO, which only has GET
// (redis.io/docs/latest/commands/bitfield). One that a script calls has miniredis' lock. Another takes it, and borrows
// the context of a script to read and write meanwhile.
func (s *Server) bitfield(c *server.Peer, cmd string, args []string) {
	context := s.script
	switch state := reflect.Indirect(reflect.ValueOf(c.Ctx)); {
	case len(args) == 0:
		c.WriteError("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
		return
	case state.IsValid() && state.FieldByName("nested").Bool():
		context = c.Ctx
	case state.IsValid() && !state.FieldByName("transaction").IsNil():
		c.WriteError(errQueued)
		return
	default:
		s.m.Lock()
		defer s.m.Unlock()
	}
	ops, problem := parseOperations(args[1:], cmd == "BITFIELD_RO")
	if problem != "" {
		c.WriteError(problem)
		return
	}
	results, err := s.runOperations(context, args[0], ops)
	if err != nil {
		c.WriteError(err.Error())
		return
	}
	c.WriteLen(len(results))
	for _, r := range results {
		c.WriteRaw(":" + strconv.FormatInt(r, 10) + "\r\n") // WriteInt takes 32 bits on some machines
	}
}

// runOperations applies the operations to the string in order and returns their results.
func (s *Server) runOperations(context any, key string, ops []operation) (results []int64, err error) {
	reply, err := s.call(context, "GET", key)
	if err != nil {
		return nil, err
	}
	text, _ := reply.(string)
	end := int64(len(text)) // after what is written, in bytes
	for _, op := range ops {
		if op.set {
			end = max(end, (op.offset+op.bits-1)/8+1)
		}
	}
	data := make([]byte, end)
	copy(data, text)
	for _, op := range ops {
		results = append(results, op.apply(data))
	}
	if string(data) != text {
		_, err = s.call(context, "SET", key, string(data), "KEEPTTL")
	}
	return results, err
}

// parseOperations returns the operations, or what is wrong with the first that is none.
func parseOperations(args []string, readOnly bool) (ops []operation, problem string) {
	for len(args) > 0 {
		words := map[string]int{"GET": 3, "SET": 4}[strings.ToUpper(args[0])]
		if words == 0 || len(args) < words {
			return nil, errSyntax
		}
		op := operation{set: words == 4}
		if problem = op.parse(args[1:words]); problem != "" {
			return nil, problem
		}
		ops, args = append(ops, op), args[words:]
	}
	for _, op := range ops {
		if op.set && readOnly {
			return nil, errReadOnly
		}
	}
	return ops, ""
}

// parse reads a type, an offset and, unless the operation is GET, a value.
func (op *operation) parse(words []string) (problem string) {
	digits, signed := strings.CutPrefix(words[0], "i")
	if !signed {
		digits, _ = strings.CutPrefix(words[0], "u")
	}
	bits, ok := parseInt(digits)
	if !ok || digits == words[0] || bits < 1 || bits > 64 || bits == 64 && !signed {
		return errFieldType
	}
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
	op.signed, op.bits, op.offset = signed, bits, offset
	if !op.set {
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

// apply carries the operation out and returns what the field held. What lies behind the string's end is zero.
func (op operation) apply(data []byte) int64 {
	var old uint64
	for i := range op.bits {
		at, mask := (op.offset+i)/8, byte(0x80)>>((op.offset+i)%8)
		old <<= 1
		if at >= int64(len(data)) {
			continue
		}
		if data[at]&mask != 0 {
			old |= 1
		}
		if !op.set {
			continue
		}
		if data[at] &^= mask; op.value>>(op.bits-1-i)&1 != 0 {
			data[at] |= mask
		}
	}
	if unused := 64 - op.bits; op.signed {
		return int64(old<<unused) >> unused // repeats the sign
	}
	return int64(old)
}
