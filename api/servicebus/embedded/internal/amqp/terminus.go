package amqp

import "fmt"

// An Error is an AMQP error: a condition for programs, and a description for people.
type Error struct {
	Condition   Symbol
	Description string
	Info        Map
}

// Errorf returns an Error with a formatted description.
func Errorf(condition Symbol, format string, args ...any) *Error {
	return &Error{Condition: condition, Description: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return string(e.Condition) + ": " + e.Description }

// The error conditions of the AMQP specification that the server uses.
const (
	InternalError         Symbol = "amqp:internal-error"
	NotFound              Symbol = "amqp:not-found"
	UnauthorizedAccess    Symbol = "amqp:unauthorized-access"
	DecodeError           Symbol = "amqp:decode-error"
	ResourceLimitExceeded Symbol = "amqp:resource-limit-exceeded"
	NotAllowed            Symbol = "amqp:not-allowed"
	InvalidField          Symbol = "amqp:invalid-field"
	NotImplemented        Symbol = "amqp:not-implemented"
	PreconditionFailed    Symbol = "amqp:precondition-failed"
	IllegalState          Symbol = "amqp:illegal-state"
	FrameSizeTooSmall     Symbol = "amqp:frame-size-too-small"
	ConnectionForced      Symbol = "amqp:connection:forced"
	FramingError          Symbol = "amqp:connection:framing-error"
	WindowViolation       Symbol = "amqp:session:window-violation"
	ErrantLink            Symbol = "amqp:session:errant-link"
	HandleInUse           Symbol = "amqp:session:handle-in-use"
	UnattachedHandle      Symbol = "amqp:session:unattached-handle"
	DetachForced          Symbol = "amqp:link:detach-forced"
	TransferLimitExceeded Symbol = "amqp:link:transfer-limit-exceeded"
	MessageSizeExceeded   Symbol = "amqp:link:message-size-exceeded"
)

// A Source is the node that sends the messages of a link.
type Source struct {
	Address      string
	Durable      uint32
	ExpiryPolicy Symbol
	Timeout      uint32
	Dynamic      bool
	Filter       Map
	rest         List // fields that the server echoes but does not interpret
}

// A Target is the node that receives the messages of a link.
type Target struct {
	Address      string
	Durable      uint32
	ExpiryPolicy Symbol
	Timeout      uint32
	Dynamic      bool
	rest         List
}

// A Coordinator is the target of a link that controls transactions.
type Coordinator struct{ Capabilities any }

// The server interprets only the first five fields of a source or target, and the filter of a source. It echoes the
// remaining fields.
const (
	filterField  = 7
	sourceFields = 11
	targetFields = 7
)

func readTerminus(f *fieldReader) any {
	v := f.nextField()
	if v == nil {
		return nil
	}
	described, ok := v.(Described)
	list, isList := described.Value.(List)
	if !ok || !isList {
		f.recordWrongType(v)
		return nil
	}
	inner := &fieldReader{list: list}
	address := func() string {
		switch v := inner.nextField().(type) {
		case nil:
			return ""
		case string:
			return v
		default:
			inner.recordWrongType(v)
			return ""
		}
	}
	var end any
	switch described.Descriptor {
	case uint64(descSource):
		s := &Source{Address: address(), Durable: fieldOr(inner, uint32(0)), ExpiryPolicy: fieldOr(inner, Symbol("")), Timeout: fieldOr(inner, uint32(0)), Dynamic: fieldOr(inner, false)}
		inner.at = filterField
		s.Filter = fieldOr(inner, Map(nil))
		s.rest = list
		end = s
	case uint64(descTarget):
		end = &Target{Address: address(), Durable: fieldOr(inner, uint32(0)), ExpiryPolicy: fieldOr(inner, Symbol("")), Timeout: fieldOr(inner, uint32(0)), Dynamic: fieldOr(inner, false), rest: list}
	case uint64(descCoordinator):
		end = &Coordinator{Capabilities: inner.nextField()}
	default:
		inner.recordWrongType(v)
	}
	if f.err == nil {
		f.err = inner.err
	}
	return end
}

func encodeTerminus(v any) any {
	switch v := v.(type) {
	case *Source:
		if v == nil {
			return nil
		}
		list := resizeList(v.rest, sourceFields)
		copy(list, List{zeroAsNull(v.Address), zeroAsNull(v.Durable), zeroAsNull(v.ExpiryPolicy), zeroAsNull(v.Timeout), zeroAsNull(v.Dynamic)})
		list[filterField] = mapOrNull(v.Filter)
		return Described{uint64(descSource), trimNulls(list)}
	case *Target:
		if v == nil {
			return nil
		}
		list := resizeList(v.rest, targetFields)
		copy(list, List{zeroAsNull(v.Address), zeroAsNull(v.Durable), zeroAsNull(v.ExpiryPolicy), zeroAsNull(v.Timeout), zeroAsNull(v.Dynamic)})
		return Described{uint64(descTarget), trimNulls(list)}
	case *Coordinator:
		return Described{uint64(descCoordinator), List{v.Capabilities}}
	}
	return nil
}

// resizeList returns a copy of list with n elements: truncated, or extended with nil.
func resizeList(list List, n int) List {
	c := make(List, n)
	copy(c, list)
	return c
}

func trimNulls(list List) List {
	for len(list) > 0 && list[len(list)-1] == nil {
		list = list[:len(list)-1]
	}
	return list
}
