package amqp

import (
	"errors"
	"fmt"
)

// The roles of the two ends of a link.
const (
	RoleSender   = false
	RoleReceiver = true
)

// The modes of settlement.
const (
	SenderUnsettled uint8 = 0
	SenderSettled   uint8 = 1
	SenderMixed     uint8 = 2
	ReceiverFirst   uint8 = 0
	ReceiverSecond  uint8 = 1
)

// The descriptors of performatives and of the values in them.
const (
	descOpen        = 0x10
	descBegin       = 0x11
	descAttach      = 0x12
	descFlow        = 0x13
	descTransfer    = 0x14
	descDisposition = 0x15
	descDetach      = 0x16
	descEnd         = 0x17
	descClose       = 0x18
	descError       = 0x1d
	descAccepted    = 0x24
	descRejected    = 0x25
	descReleased    = 0x26
	descModified    = 0x27
	descSource      = 0x28
	descTarget      = 0x29
	descCoordinator = 0x30
	descDeclare     = 0x31
	descMechanisms  = 0x40
	descInit        = 0x41
	descOutcome     = 0x44
)

// A Performative is one of the nine AMQP performatives, or a SASL performative that a server needs.
type Performative interface {
	typeCode() uint64
	listFields() List
	readFields(*fieldReader)
}

// In performatives, optional numbers are pointers. A missing number is nil.

// Open is the first frame that each peer sends.
type Open struct {
	ContainerID, Hostname string
	MaxFrameSize          uint32
	ChannelMax            uint16
	IdleTimeOut           uint32 // in milliseconds; 0 means no timeout
	Properties            Map
}

// Begin starts a session.
type Begin struct {
	RemoteChannel                  *uint16
	NextOutgoingID                 uint32
	IncomingWindow, OutgoingWindow uint32
	HandleMax                      uint32
}

// Attach starts a link.
type Attach struct {
	Name                           string
	Handle                         uint32
	Role                           bool
	SenderSettle, ReceiverSettle   *uint8
	Source, Target                 any // *Source, *Target, Coordinator, or nil
	InitialDeliveryCount           *uint32
	MaxMessageSize                 uint64
	OfferedCapabilities, Desirable any
	Properties                     Map
}

// Flow reports the state of a session. If Handle is set, it also reports the state of a link.
type Flow struct {
	NextIncomingID                                 *uint32
	IncomingWindow, NextOutgoingID, OutgoingWindow uint32
	Handle                                         *uint32
	DeliveryCount, LinkCredit, Available           *uint32
	Drain, Echo                                    bool
}

// Transfer contains a message, or a part of one.
type Transfer struct {
	Handle         uint32
	DeliveryID     *uint32
	DeliveryTag    []byte
	MessageFormat  *uint32
	Settled        *bool
	More           bool
	ReceiverSettle *uint8
	State          any
	Resume         bool
	Aborted        bool
	Batchable      bool
}

// Disposition reports the state of deliveries.
type Disposition struct {
	Role      bool
	First     uint32
	Last      *uint32
	Settled   bool
	State     any
	Batchable bool
}

// Detach ends a link.
type Detach struct {
	Handle uint32
	Closed bool
	Error  *Error
}

// End ends a session.
type End struct{ Error *Error }

// Close ends a connection.
type Close struct{ Error *Error }

// Mechanisms lists the SASL mechanisms of the server.
type Mechanisms struct{ Names []Symbol }

// Init chooses a mechanism.
type Init struct {
	Mechanism Symbol
	Response  []byte
	Hostname  string
}

// Outcome is the server's answer to an Init. Code 0 accepts the peer, code 1 rejects it.
type Outcome struct{ Code uint8 }

// AppendPerformative appends the encoding of p to b.
func AppendPerformative(b []byte, p Performative) []byte {
	b = append(b, codeDescribed, codeSmallUlong, byte(p.typeCode())) //nolint:gosec // all are below 256
	fields := p.listFields()
	for len(fields) > 0 && fields[len(fields)-1] == nil {
		fields = fields[:len(fields)-1]
	}
	return appendList(b, fields)
}

// ReadPerformative decodes the performative at the start of a frame body, and returns the bytes after it.
func ReadPerformative(b []byte) (Performative, []byte, error) {
	d := NewDecoder(b)
	v, err := d.Value()
	if err != nil {
		return nil, nil, err
	}
	described, ok := v.(Described)
	if !ok {
		return nil, nil, errors.New("amqp: the frame has no performative")
	}
	code, ok := described.Descriptor.(uint64)
	if !ok {
		return nil, nil, fmt.Errorf("amqp: a performative is described by %v, not by a number", described.Descriptor)
	}
	p := newPerformative(code)
	if p == nil {
		return nil, nil, fmt.Errorf("amqp: no performative has the descriptor 0x%x", code)
	}
	list, ok := described.Value.(List)
	if !ok {
		return nil, nil, fmt.Errorf("amqp: performative 0x%x is not a list", code)
	}
	f := &fieldReader{list: list}
	p.readFields(f)
	if f.err != nil {
		return nil, nil, fmt.Errorf("amqp: performative 0x%x: %w", code, f.err)
	}
	return p, d.Rest(), nil
}

func newPerformative(code uint64) Performative {
	switch code {
	case descOpen:
		return &Open{}
	case descBegin:
		return &Begin{}
	case descAttach:
		return &Attach{}
	case descFlow:
		return &Flow{}
	case descTransfer:
		return &Transfer{}
	case descDisposition:
		return &Disposition{}
	case descDetach:
		return &Detach{}
	case descEnd:
		return &End{}
	case descClose:
		return &Close{}
	case descMechanisms:
		return &Mechanisms{}
	case descInit:
		return &Init{}
	case descOutcome:
		return &Outcome{}
	}
	return nil
}
