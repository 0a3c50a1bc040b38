package webhook

import (
	"maps"
	"net/textproto"
	"slices"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// Limits of headers that a user chooses.
const (
	MaxHeaders     = 16
	MaxHeaderValue = 1 << 10 // bytes
	MaxHeaderBytes = 8 << 10 // maximum total bytes of names and values
)

// reserved contains headers that only the hub or the protocol may set. Authorization is not
// reserved, because the hub sets it only for receivers with an HMAC key.
var reserved = []string{
	"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Digest",
	"Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
}

// reservedPrefixes contains prefixes of further headers that only the hub or the protocol may set.
var reservedPrefixes = []string{"Webhook-", "X-Broker-", "X-Dss-", "Proxy-", "Sec-"}

// CheckHeaders returns an Invalid error if a user may not set one of headers. The error starts with
// the JSON pointer of that header, and does not contain the value, which may be a secret.
func CheckHeaders(headers map[string]string) error {
	if n := len(headers); n > MaxHeaders {
		return domain.Errorf(domain.Invalid, "/headers: want at most %d, got %d", MaxHeaders, n)
	}
	size, seen := 0, make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		pointer := "/headers/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(domain.Shorten(name))
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch value := headers[name]; {
		case !isToken(name):
			return domain.Errorf(domain.Invalid, "%s: want a name of letters, digits and -", pointer)
		case slices.Contains(reserved, canonical), hasReservedPrefix(canonical):
			return domain.Errorf(domain.Invalid, "%s: the hub sets it", pointer)
		case len(value) > MaxHeaderValue:
			return domain.Errorf(domain.Invalid, "%s: want at most %d bytes, got %d", pointer, MaxHeaderValue, len(value))
		case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }):
			return domain.Errorf(domain.Invalid, "%s: want printable ASCII characters", pointer)
		case seen[canonical]:
			return domain.Errorf(domain.Invalid, "%s: it occurs twice, in other letters", pointer)
		}
		seen[canonical] = true
		size += len(name) + len(headers[name])
	}
	if size > MaxHeaderBytes {
		return domain.Errorf(domain.Invalid, "/headers: want at most %d bytes of names and values, got %d", MaxHeaderBytes, size)
	}
	return nil
}

func hasReservedPrefix(name string) bool {
	return slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func isToken(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
	})
}
