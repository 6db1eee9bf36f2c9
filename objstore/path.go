package objstore

import (
	"fmt"
	"net/url"
	"strings"
)

// pathOf returns where a valid key's object is, with slashes, below a directory. Different keys have different
// paths on every file system: those that fold case, those that give names such as con and nul to devices, those
// that compose accents. No name in it begins with a dot.
func pathOf(key string) string {
	var b strings.Builder
	for i, segment := range strings.Split(key, "/") {
		if i > 0 {
			b.WriteByte('/')
		}
		escape(&b, segment)
	}
	return b.String()
}

// escape writes %xx for all bytes but lower-case letters, digits and a few signs.
func escape(b *strings.Builder, segment string) {
	for i := range len(segment) {
		c := segment[i]
		if isPlain(c) && (i > 0 || c != '.' && !isDevice(segment)) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(b, "%%%02x", c)
		}
	}
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.IndexByte("._-=", c) >= 0
}

// isDevice reports whether Windows takes a name for a device, which it does whatever the extension.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	switch base {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(base) == 4 && (base[:3] == "com" || base[:3] == "lpt") && '0' <= base[3] && base[3] <= '9'
}

// segmentOf returns the segment with the escaped form name, if there is one.
func segmentOf(name string) (string, bool) {
	segment, err := url.PathUnescape(name)
	if err != nil || strings.Contains(segment, "/") || CheckKey(segment) != nil {
		return "", false
	}
	return segment, pathOf(segment) == name
}
