package amqp

import (
	"fmt"
	"math"
)

// fieldReader reads the fields of a list in order. A missing field counts as null. The error names the first field of a
// wrong type.
type fieldReader struct {
	list List
	at   int
	err  error
}

func (f *fieldReader) nextField() any {
	f.at++
	if f.at > len(f.list) {
		return nil
	}
	return f.list[f.at-1]
}

func (f *fieldReader) recordWrongType(v any) {
	if f.err == nil {
		f.err = fmt.Errorf("field %d is a %T", f.at, v)
	}
}

// optionalField reads a field of type T. It returns nil if the field is null.
func optionalField[T any](f *fieldReader) *T {
	switch v := f.nextField().(type) {
	case nil:
		return nil
	case T:
		return &v
	default:
		f.recordWrongType(v)
		return nil
	}
}

// fieldOr reads a field of type T. It returns fallback if the field is null.
func fieldOr[T any](f *fieldReader, fallback T) T {
	if v := optionalField[T](f); v != nil {
		return *v
	}
	return fallback
}

// requiredField reads a field that must not be null.
func requiredField[T any](f *fieldReader) T {
	v := optionalField[T](f)
	if v == nil {
		if f.err == nil {
			f.err = fmt.Errorf("field %d is missing", f.at)
		}
		return *new(T)
	}
	return *v
}

func errorField(f *fieldReader) *Error {
	v := f.nextField()
	if v == nil {
		return nil
	}
	described, ok := v.(Described)
	if !ok || described.Descriptor != any(uint64(descError)) {
		f.recordWrongType(v)
		return nil
	}
	list, ok := described.Value.(List)
	if !ok {
		f.recordWrongType(v)
		return nil
	}
	inner := &fieldReader{list: list}
	e := &Error{Condition: requiredField[Symbol](inner), Description: fieldOr(inner, ""), Info: fieldOr(inner, Map(nil))}
	if f.err == nil {
		f.err = inner.err
	}
	return e
}

// zeroAsNull returns v, or nil if v is the zero value.
func zeroAsNull[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// pointerValue returns *v, or nil if v is nil.
func pointerValue[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

func mapOrNull(m Map) any {
	if m == nil {
		return nil
	}
	return m
}

func (e *Error) describedValue() any {
	if e == nil {
		return nil
	}
	return Described{uint64(descError), List{e.Condition, zeroAsNull(e.Description), mapOrNull(e.Info)}}
}

func (*Open) typeCode() uint64 { return descOpen }

func (o *Open) listFields() List {
	return List{o.ContainerID, zeroAsNull(o.Hostname), o.MaxFrameSize, o.ChannelMax, zeroAsNull(o.IdleTimeOut), nil, nil, nil, nil, mapOrNull(o.Properties)}
}

func (o *Open) readFields(f *fieldReader) {
	o.ContainerID, o.Hostname = fieldOr(f, ""), fieldOr(f, "")
	o.MaxFrameSize, o.ChannelMax, o.IdleTimeOut = fieldOr(f, uint32(math.MaxUint32)), fieldOr(f, uint16(math.MaxUint16)), fieldOr(f, uint32(0))
	f.at += 4 // skip locales and capabilities
	o.Properties = fieldOr(f, Map(nil))
}

func (*Begin) typeCode() uint64 { return descBegin }

func (p *Begin) listFields() List {
	return List{pointerValue(p.RemoteChannel), p.NextOutgoingID, p.IncomingWindow, p.OutgoingWindow, p.HandleMax}
}

func (p *Begin) readFields(f *fieldReader) {
	p.RemoteChannel = optionalField[uint16](f)
	p.NextOutgoingID, p.IncomingWindow, p.OutgoingWindow = requiredField[uint32](f), requiredField[uint32](f), requiredField[uint32](f)
	p.HandleMax = fieldOr(f, uint32(math.MaxUint32))
}

func (*Attach) typeCode() uint64 { return descAttach }

func (a *Attach) listFields() List {
	return List{
		a.Name, a.Handle, a.Role, pointerValue(a.SenderSettle), pointerValue(a.ReceiverSettle), encodeTerminus(a.Source), encodeTerminus(a.Target),
		nil, nil, pointerValue(a.InitialDeliveryCount), zeroAsNull(a.MaxMessageSize), a.OfferedCapabilities, a.Desirable, mapOrNull(a.Properties),
	}
}

func (a *Attach) readFields(f *fieldReader) {
	a.Name, a.Handle, a.Role = requiredField[string](f), requiredField[uint32](f), requiredField[bool](f)
	a.SenderSettle, a.ReceiverSettle = optionalField[uint8](f), optionalField[uint8](f)
	a.Source, a.Target = readTerminus(f), readTerminus(f)
	f.at += 2 // skip unsettled deliveries, because links are never resumed
	a.InitialDeliveryCount, a.MaxMessageSize = optionalField[uint32](f), fieldOr(f, uint64(0))
	a.OfferedCapabilities, a.Desirable = f.nextField(), f.nextField()
	a.Properties = fieldOr(f, Map(nil))
}

func (*Flow) typeCode() uint64 { return descFlow }

func (p *Flow) listFields() List {
	return List{
		pointerValue(p.NextIncomingID), p.IncomingWindow, p.NextOutgoingID, p.OutgoingWindow, pointerValue(p.Handle),
		pointerValue(p.DeliveryCount), pointerValue(p.LinkCredit), pointerValue(p.Available), zeroAsNull(p.Drain), zeroAsNull(p.Echo),
	}
}

func (p *Flow) readFields(f *fieldReader) {
	p.NextIncomingID = optionalField[uint32](f)
	p.IncomingWindow, p.NextOutgoingID, p.OutgoingWindow = requiredField[uint32](f), requiredField[uint32](f), requiredField[uint32](f)
	p.Handle, p.DeliveryCount, p.LinkCredit, p.Available = optionalField[uint32](f), optionalField[uint32](f), optionalField[uint32](f), optionalField[uint32](f)
	p.Drain, p.Echo = fieldOr(f, false), fieldOr(f, false)
}

func (*Transfer) typeCode() uint64 { return descTransfer }

func (t *Transfer) listFields() List {
	list := List{
		t.Handle, pointerValue(t.DeliveryID), nil, pointerValue(t.MessageFormat), pointerValue(t.Settled), zeroAsNull(t.More),
		pointerValue(t.ReceiverSettle), encodeState(t.State), zeroAsNull(t.Resume), zeroAsNull(t.Aborted), zeroAsNull(t.Batchable),
	}
	if t.DeliveryTag != nil {
		list[2] = t.DeliveryTag
	}
	return list
}

func (t *Transfer) readFields(f *fieldReader) {
	t.Handle, t.DeliveryID, t.DeliveryTag = requiredField[uint32](f), optionalField[uint32](f), fieldOr(f, []byte(nil))
	t.MessageFormat, t.Settled, t.More = optionalField[uint32](f), optionalField[bool](f), fieldOr(f, false)
	t.ReceiverSettle, t.State = optionalField[uint8](f), readState(f)
	t.Resume, t.Aborted, t.Batchable = fieldOr(f, false), fieldOr(f, false), fieldOr(f, false)
}

func (*Disposition) typeCode() uint64 { return descDisposition }

func (p *Disposition) listFields() List {
	return List{p.Role, p.First, pointerValue(p.Last), zeroAsNull(p.Settled), encodeState(p.State), zeroAsNull(p.Batchable)}
}

func (p *Disposition) readFields(f *fieldReader) {
	p.Role, p.First, p.Last = requiredField[bool](f), requiredField[uint32](f), optionalField[uint32](f)
	p.Settled, p.State, p.Batchable = fieldOr(f, false), readState(f), fieldOr(f, false)
}

func (*Detach) typeCode() uint64 { return descDetach }

func (p *Detach) listFields() List {
	return List{p.Handle, zeroAsNull(p.Closed), p.Error.describedValue()}
}

func (p *Detach) readFields(f *fieldReader) {
	p.Handle, p.Closed, p.Error = requiredField[uint32](f), fieldOr(f, false), errorField(f)
}

func (*End) typeCode() uint64            { return descEnd }
func (p *End) listFields() List          { return List{p.Error.describedValue()} }
func (p *End) readFields(f *fieldReader) { p.Error = errorField(f) }

func (*Close) typeCode() uint64            { return descClose }
func (p *Close) listFields() List          { return List{p.Error.describedValue()} }
func (p *Close) readFields(f *fieldReader) { p.Error = errorField(f) }

func (*Mechanisms) typeCode() uint64 { return descMechanisms }

func (m *Mechanisms) listFields() List {
	names := make([]any, len(m.Names))
	for i, name := range m.Names {
		names[i] = name
	}
	return List{Array{Of: OfSymbol, Values: names}}
}

func (m *Mechanisms) readFields(f *fieldReader) {
	switch v := f.nextField().(type) {
	case Symbol:
		m.Names = []Symbol{v}
	case Array:
		for _, name := range v.Values {
			symbol, ok := name.(Symbol)
			if !ok {
				f.recordWrongType(name)
			}
			m.Names = append(m.Names, symbol)
		}
	default:
		f.recordWrongType(v)
	}
}

func (*Init) typeCode() uint64   { return descInit }
func (i *Init) listFields() List { return List{i.Mechanism, i.Response, zeroAsNull(i.Hostname)} }

func (i *Init) readFields(f *fieldReader) {
	i.Mechanism, i.Response, i.Hostname = requiredField[Symbol](f), fieldOr(f, []byte(nil)), fieldOr(f, "")
}

func (*Outcome) typeCode() uint64            { return descOutcome }
func (o *Outcome) listFields() List          { return List{o.Code} }
func (o *Outcome) readFields(f *fieldReader) { o.Code = requiredField[uint8](f) }
