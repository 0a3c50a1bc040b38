package amqp

import (
	"errors"
	"fmt"
)

// The descriptors of the sections of a message, in the order of the sections.
const (
	sectionHeader                = 0x70
	sectionDeliveryAnnotations   = 0x71
	sectionMessageAnnotations    = 0x72
	sectionProperties            = 0x73
	sectionApplicationProperties = 0x74
	sectionData                  = 0x75
	sectionSequence              = 0x76
	sectionValue                 = 0x77
	sectionFooter                = 0x78
)

// Sections are the sections of a message, as the sender has encoded them, with their descriptors. A missing section is
// nil. Body contains all data sections, all sequence sections, or the value section.
type Sections struct {
	Header, DeliveryAnnotations, MessageAnnotations []byte
	Properties, ApplicationProperties, Body, Footer []byte
}

var errSections = errors.New("amqp: the sections of a message are out of order")

// Split splits a message into its sections, which share the memory of b.
func Split(b []byte) (Sections, error) {
	var s Sections
	d := NewDecoder(b)
	last, body := uint64(0), 0
	for len(d.b) > 0 {
		at := len(b) - len(d.b)
		code, err := sectionCode(d)
		if err != nil {
			return Sections{}, err
		}
		section, err := d.Skip()
		if err != nil {
			return Sections{}, err
		}
		repeats := code == last && (code == sectionData || code == sectionSequence)
		if code <= last && !repeats || isBody(code) && isBody(last) && !repeats {
			return Sections{}, errSections
		}
		last = code
		switch code {
		case sectionHeader:
			s.Header = section
		case sectionDeliveryAnnotations:
			s.DeliveryAnnotations = section
		case sectionMessageAnnotations:
			s.MessageAnnotations = section
		case sectionProperties:
			s.Properties = section
		case sectionApplicationProperties:
			s.ApplicationProperties = section
		case sectionFooter:
			s.Footer = section
		default:
			if s.Body == nil {
				body = at
			}
			end := at + len(section) // this is the next section of the body
			s.Body = b[body:end:end]
		}
	}
	return s, nil
}

func isBody(code uint64) bool { return code >= sectionData && code <= sectionValue }

// sectionCode reads the descriptor of a section.
func sectionCode(d *Decoder) (uint64, error) {
	b := d.b
	var code uint64
	switch {
	case len(b) > 2 && b[0] == codeDescribed && b[1] == codeSmallUlong:
		code = uint64(b[2])
	case len(b) > 9 && b[0] == codeDescribed && b[1] == codeUlong:
		v, err := NewDecoder(b[1:]).Value()
		if err != nil {
			return 0, err
		}
		code, _ = v.(uint64)
	}
	if code < sectionHeader || code > sectionFooter {
		return 0, errors.New("amqp: a message contains a part that is not a section of AMQP")
	}
	return code, nil
}

// MessageHeader is the section of a message that brokers may change.
type MessageHeader struct {
	Durable       bool
	Priority      *uint8
	TTL           *uint32 // milliseconds
	FirstAcquirer bool
	DeliveryCount uint32
}

// Properties is the section of a message that brokers must not change.
type Properties struct {
	MessageID, CorrelationID         any // string, uint64, UUID or []byte
	UserID                           []byte
	To, Subject, ReplyTo             string
	ContentType, ContentEncoding     string
	AbsoluteExpiryTime, CreationTime *Timestamp
	GroupID                          *string
	GroupSequence                    *uint32
	ReplyToGroupID                   string
}

// readSection returns the value in section b. The descriptor of b must be code.
func readSection(b []byte, code uint64) (any, error) {
	v, err := Unmarshal(b)
	if err != nil {
		return nil, err
	}
	described, ok := v.(Described)
	if !ok || described.Descriptor != any(code) {
		return nil, fmt.Errorf("amqp: the section 0x%x is missing", code)
	}
	return described.Value, nil
}

func sectionList(b []byte, code uint64) (*fieldReader, error) {
	if b == nil {
		return &fieldReader{}, nil
	}
	v, err := readSection(b, code)
	if err != nil {
		return nil, err
	}
	list, ok := v.(List)
	if !ok {
		return nil, fmt.Errorf("amqp: the section 0x%x is a %T, not a list", code, v)
	}
	return &fieldReader{list: list}, nil
}

func sectionMap(b []byte, code uint64) (Map, error) {
	if b == nil {
		return nil, nil
	}
	v, err := readSection(b, code)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, nil
	}
	m, ok := v.(Map)
	if !ok {
		return nil, fmt.Errorf("amqp: the section 0x%x is a %T, not a map", code, v)
	}
	return m, nil
}

// ReadHeader decodes the header, or returns the zero value if none exists.
func (s *Sections) ReadHeader() (MessageHeader, error) {
	f, err := sectionList(s.Header, sectionHeader)
	if err != nil {
		return MessageHeader{}, err
	}
	h := MessageHeader{Durable: fieldOr(f, false), Priority: optionalField[uint8](f), TTL: optionalField[uint32](f), FirstAcquirer: fieldOr(f, false), DeliveryCount: fieldOr(f, uint32(0))}
	return h, f.err
}

// ReadProperties decodes the properties, or returns the zero value if none exist.
func (s *Sections) ReadProperties() (Properties, error) {
	f, err := sectionList(s.Properties, sectionProperties)
	if err != nil {
		return Properties{}, err
	}
	var p Properties
	p.MessageID = messageID(f)
	p.UserID = fieldOr(f, []byte(nil))
	p.To, p.Subject, p.ReplyTo = fieldOr(f, ""), fieldOr(f, ""), fieldOr(f, "")
	p.CorrelationID = messageID(f)
	p.ContentType, p.ContentEncoding = string(fieldOr(f, Symbol(""))), string(fieldOr(f, Symbol("")))
	p.AbsoluteExpiryTime, p.CreationTime = optionalField[Timestamp](f), optionalField[Timestamp](f)
	p.GroupID, p.GroupSequence, p.ReplyToGroupID = optionalField[string](f), optionalField[uint32](f), fieldOr(f, "")
	return p, f.err
}

// messageID reads the id of a message, which must not be a symbol.
func messageID(f *fieldReader) any {
	switch v := f.nextField().(type) {
	case nil, string, uint64, UUID, []byte:
		return v
	default:
		f.recordWrongType(v)
		return nil
	}
}

// ReadDeliveryAnnotations reads the delivery annotations.
func (s *Sections) ReadDeliveryAnnotations() (Map, error) {
	return sectionMap(s.DeliveryAnnotations, sectionDeliveryAnnotations)
}

// ReadMessageAnnotations reads the message annotations.
func (s *Sections) ReadMessageAnnotations() (Map, error) {
	return sectionMap(s.MessageAnnotations, sectionMessageAnnotations)
}

// ReadApplicationProperties reads the application properties.
func (s *Sections) ReadApplicationProperties() (Map, error) {
	return sectionMap(s.ApplicationProperties, sectionApplicationProperties)
}

// ReadBodies returns the value of each body section. For a data section, this is a []byte.
func (s *Sections) ReadBodies() ([]any, error) {
	var bodies []any
	d := NewDecoder(s.Body)
	for len(d.b) > 0 {
		v, err := d.Value()
		if err != nil {
			return nil, err
		}
		described, ok := v.(Described)
		if !ok {
			return nil, errSections
		}
		bodies = append(bodies, described.Value)
	}
	return bodies, nil
}

// Append appends the encoded message to b.
func (s *Sections) Append(b []byte) []byte {
	for _, section := range [][]byte{s.Header, s.DeliveryAnnotations, s.MessageAnnotations, s.Properties, s.ApplicationProperties, s.Body, s.Footer} {
		b = append(b, section...)
	}
	return b
}

func makeSection(code byte, v any) []byte {
	return Append([]byte{codeDescribed, codeSmallUlong, code}, v)
}

// SetHeader replaces the header.
func (s *Sections) SetHeader(h MessageHeader) {
	s.Header = makeSection(sectionHeader, trimNulls(List{h.Durable, pointerValue(h.Priority), pointerValue(h.TTL), h.FirstAcquirer, h.DeliveryCount}))
}

// SetProperties replaces the properties.
func (s *Sections) SetProperties(p Properties) {
	list := List{
		p.MessageID, nil, zeroAsNull(p.To), zeroAsNull(p.Subject), zeroAsNull(p.ReplyTo), p.CorrelationID, zeroAsNull(Symbol(p.ContentType)), zeroAsNull(Symbol(p.ContentEncoding)),
		pointerValue(p.AbsoluteExpiryTime), pointerValue(p.CreationTime), pointerValue(p.GroupID), pointerValue(p.GroupSequence), zeroAsNull(p.ReplyToGroupID),
	}
	if p.UserID != nil {
		list[1] = p.UserID
	}
	s.Properties = makeSection(sectionProperties, trimNulls(list))
}

// SetDeliveryAnnotations replaces the delivery annotations.
func (s *Sections) SetDeliveryAnnotations(m Map) {
	s.DeliveryAnnotations = makeSection(sectionDeliveryAnnotations, m)
}

// SetMessageAnnotations replaces the message annotations.
func (s *Sections) SetMessageAnnotations(m Map) {
	s.MessageAnnotations = makeSection(sectionMessageAnnotations, m)
}

// SetApplicationProperties replaces the application properties.
func (s *Sections) SetApplicationProperties(m Map) {
	s.ApplicationProperties = makeSection(sectionApplicationProperties, m)
}

// SetValue sets the body to v.
func (s *Sections) SetValue(v any) { s.Body = makeSection(sectionValue, v) }
