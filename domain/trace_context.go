package domain

import (
	"context"
	"encoding/hex"
	"slices"
	"strings"
)

// A TraceContext names a span of a distributed trace, as defined by the W3C recommendation Trace
// Context. It records which request caused an action, to diagnose delays. It has no influence on
// the behaviour of the hub. The zero TraceContext names no span.
type TraceContext struct {
	TraceID TraceID
	SpanID  SpanID
	Sampled bool
	State   string // state of other tracing systems, in the form of the header tracestate; "": no state
}

// A TraceID is the id of a trace. The zero TraceID is not valid.
type TraceID [16]byte

// String returns id as in the header traceparent: 32 hexadecimal digits in lower case.
func (id TraceID) String() string { return hex.EncodeToString(id[:]) }

// ParseTraceID accepts 32 hexadecimal digits in lower case that are not all 0.
func ParseTraceID(text string) (TraceID, error) {
	var id TraceID
	if !decodeLowerHex(id[:], text) || id == (TraceID{}) {
		return TraceID{}, Errorf(Invalid, "trace id: want 32 digits of 0-9 a-f that are not all 0, got %q", Shorten(text))
	}
	return id, nil
}

// A SpanID is the id of a span in a trace. The zero SpanID is not valid.
type SpanID [8]byte

// String returns id as in the header traceparent: 16 hexadecimal digits in lower case.
func (id SpanID) String() string { return hex.EncodeToString(id[:]) }

const (
	traceParentLength = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	maxTraceState     = 512 // in bytes; every system must propagate at least this many
	maxTraceStates    = 32  // members
	sampledFlag       = 1
)

// ParseTraceContext returns the context that the headers traceparent and tracestate contain. It
// returns an Invalid error if parent is not valid. It drops a state that is not valid, or longer
// than 512 bytes: the recommendation allows this, and the parent is valid without a state.
func ParseTraceContext(parent, state string) (TraceContext, error) {
	c, ok := parseTraceParent(parent)
	if !ok {
		return TraceContext{}, Errorf(Invalid, "traceparent: want VERSION-TRACE-SPAN-FLAGS as in W3C Trace Context, got %q", Shorten(parent))
	}
	if isTraceState(state) {
		c.State = state
	}
	return c, nil
}

func parseTraceParent(text string) (c TraceContext, ok bool) {
	if len(text) < traceParentLength || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return c, false
	}
	var version, flags [1]byte
	if !decodeLowerHex(version[:], text[:2]) || version[0] == 0xff ||
		!decodeLowerHex(c.TraceID[:], text[3:35]) || !decodeLowerHex(c.SpanID[:], text[36:52]) ||
		!decodeLowerHex(flags[:], text[53:traceParentLength]) {
		return TraceContext{}, false
	}
	if rest := text[traceParentLength:]; rest != "" && (version[0] == 0 || rest[0] != '-') { // later versions of the recommendation may append members
		return TraceContext{}, false
	}
	c.Sampled = flags[0]&sampledFlag != 0
	return c, !c.IsZero()
}

// decodeLowerHex decodes lower-case hexadecimal digits into the slice to. It returns false if text
// contains other characters, or does not have the right length.
func decodeLowerHex(to []byte, text string) bool {
	if len(text) != hex.EncodedLen(len(to)) || strings.ContainsAny(text, "ABCDEF") {
		return false
	}
	_, err := hex.Decode(to, []byte(text))
	return err == nil
}

// isTraceState reports whether text is valid as a header tracestate: members KEY=VALUE of printable
// ASCII, separated by commas.
func isTraceState(text string) bool {
	if text == "" || len(text) > maxTraceState || strings.Count(text, ",") >= maxTraceStates {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\t' {
			return false
		}
	}
	for member := range strings.SplitSeq(text, ",") {
		if member = strings.Trim(member, " \t"); member == "" { // the recommendation allows empty members
			continue
		}
		if key, value, found := strings.Cut(member, "="); !found || key == "" || value == "" || strings.ContainsAny(key, " \t") || strings.Contains(value, "=") {
			return false
		}
	}
	return true
}

// IsZero reports whether c names no span.
func (c TraceContext) IsZero() bool { return c.TraceID == TraceID{} || c.SpanID == SpanID{} }

// Parent returns the value of the header traceparent, or "" if c names no span.
func (c TraceContext) Parent() string {
	if c.IsZero() {
		return ""
	}
	text := make([]byte, 0, traceParentLength)
	text = append(text, "00-"...)
	text = hex.AppendEncode(text, c.TraceID[:])
	text = append(text, '-')
	text = hex.AppendEncode(text, c.SpanID[:])
	if c.Sampled {
		return string(append(text, "-01"...))
	}
	return string(append(text, "-00"...))
}

// MaxCauses is the maximum number of spans that a span can name as its causes.
const MaxCauses = 64

// AddCause appends a context to causes. parent and state are the CloudEvent extensions traceparent
// and tracestate. AddCause ignores a context that is not valid or already in causes. It does
// nothing if causes has MaxCauses elements.
func AddCause(causes []TraceContext, parent, state string) []TraceContext {
	if parent == "" || len(causes) == MaxCauses {
		return causes
	}
	c, err := ParseTraceContext(parent, state)
	if err != nil || slices.Contains(causes, c) {
		return causes
	}
	return append(causes, c)
}

// Stored returns the part of c that is stored. It is the zero TraceContext if c is not sampled;
// otherwise it is c without the state of other systems.
func (c TraceContext) Stored() TraceContext {
	if !c.Sampled {
		return TraceContext{}
	}
	c.State = ""
	return c
}

// traceBytes is the number of bytes that AppendStored appends.
const traceBytes = len(TraceID{}) + len(SpanID{})

// AppendStored appends the stored form of c: the 16 bytes of its trace id, and the 8 bytes of its
// span id. It appends nothing if c is not sampled or names no span.
func (c TraceContext) AppendStored(to []byte) []byte {
	if !c.Sampled || c.IsZero() {
		return to
	}
	return append(append(to, c.TraceID[:]...), c.SpanID[:]...)
}

// ParseStored returns the context that AppendStored has encoded in data. It returns the zero
// TraceContext if data is empty or not valid.
func ParseStored(data []byte) TraceContext {
	c := TraceContext{Sampled: true}
	if len(data) != traceBytes {
		return TraceContext{}
	}
	copy(c.TraceID[:], data)
	copy(c.SpanID[:], data[len(c.TraceID):])
	if c.IsZero() {
		return TraceContext{}
	}
	return c
}

type traceContextKey struct{}

// WithTraceContext returns a copy of ctx that contains c, the span of the current request. The
// package that receives the request calls it. If c is zero, it returns ctx.
func WithTraceContext(ctx context.Context, c TraceContext) context.Context {
	if c.IsZero() {
		return ctx
	}
	return context.WithValue(ctx, traceContextKey{}, c)
}

// TraceContextOf returns the span of the current request, or the zero TraceContext if ctx contains
// none.
func TraceContextOf(ctx context.Context) TraceContext {
	c, _ := ctx.Value(traceContextKey{}).(TraceContext)
	return c
}
