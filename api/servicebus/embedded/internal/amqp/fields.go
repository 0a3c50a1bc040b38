package amqp

import (
	"fmt"
	"math"
)

// fields reads the fields of a list one after the other. Those that are not
// there are null; the first of the wrong type is the error.
type fields struct {
	list List
	at   int
	err  error
}

func (f *fields) next() any {
	f.at++
	if f.at > len(f.list) {
		return nil
	}
	return f.list[f.at-1]
}

func (f *fields) wrong(v any) {
	if f.err == nil {
		f.err = fmt.Errorf("field %d is a %T", f.at, v)
	}
}

// optional reads a field of type T, nil if it is null.
func optional[T any](f *fields) *T {
	switch v := f.next().(type) {
	case nil:
		return nil
	case T:
		return &v
	default:
		f.wrong(v)
		return nil
	}
}

// field reads a field of type T, or fallback if it is null.
func field[T any](f *fields, fallback T) T {
	if v := optional[T](f); v != nil {
		return *v
	}
	return fallback
}

// required reads a field that has to be there.
func required[T any](f *fields) T {
	v := optional[T](f)
	if v == nil {
		if f.err == nil {
			f.err = fmt.Errorf("field %d is missing", f.at)
		}
		return *new(T)
	}
	return *v
}

func problem(f *fields) *Error {
	v := f.next()
	if v == nil {
		return nil
	}
	described, ok := v.(Described)
	if !ok || described.Descriptor != any(uint64(descError)) {
		f.wrong(v)
		return nil
	}
	list, ok := described.Value.(List)
	if !ok {
		f.wrong(v)
		return nil
	}
	inner := &fields{list: list}
	e := &Error{Condition: required[Symbol](inner), Description: field(inner, ""), Info: field(inner, Map(nil))}
	if f.err == nil {
		f.err = inner.err
	}
	return e
}

// or is v, or null if v is the zero value.
func or[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// given is what v points to, or null.
func given[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

func entries(m Map) any {
	if m == nil {
		return nil
	}
	return m
}

func (e *Error) value() any {
	if e == nil {
		return nil
	}
	return Described{uint64(descError), List{e.Condition, or(e.Description), entries(e.Info)}}
}

func (*Open) descriptor() uint64 { return descOpen }

func (o *Open) fields() List {
	return List{o.ContainerID, or(o.Hostname), o.MaxFrameSize, o.ChannelMax, or(o.IdleTimeOut), nil, nil, nil, nil, entries(o.Properties)}
}

func (o *Open) read(f *fields) {
	o.ContainerID, o.Hostname = field(f, ""), field(f, "")
	o.MaxFrameSize, o.ChannelMax, o.IdleTimeOut = field(f, uint32(math.MaxUint32)), field(f, uint16(math.MaxUint16)), field(f, uint32(0))
	f.at += 4 // locales and capabilities
	o.Properties = field(f, Map(nil))
}

func (*Begin) descriptor() uint64 { return descBegin }

func (p *Begin) fields() List {
	return List{given(p.RemoteChannel), p.NextOutgoingID, p.IncomingWindow, p.OutgoingWindow, p.HandleMax}
}

func (p *Begin) read(f *fields) {
	p.RemoteChannel = optional[uint16](f)
	p.NextOutgoingID, p.IncomingWindow, p.OutgoingWindow = required[uint32](f), required[uint32](f), required[uint32](f)
	p.HandleMax = field(f, uint32(math.MaxUint32))
}

func (*Attach) descriptor() uint64 { return descAttach }

func (a *Attach) fields() List {
	return List{
		a.Name, a.Handle, a.Role, given(a.SenderSettle), given(a.ReceiverSettle), terminusValue(a.Source), terminusValue(a.Target),
		nil, nil, given(a.InitialDeliveryCount), or(a.MaxMessageSize), a.OfferedCapabilities, a.Desirable, entries(a.Properties),
	}
}

func (a *Attach) read(f *fields) {
	a.Name, a.Handle, a.Role = required[string](f), required[uint32](f), required[bool](f)
	a.SenderSettle, a.ReceiverSettle = optional[uint8](f), optional[uint8](f)
	a.Source, a.Target = terminus(f), terminus(f)
	f.at += 2 // unsettled deliveries: links are never resumed
	a.InitialDeliveryCount, a.MaxMessageSize = optional[uint32](f), field(f, uint64(0))
	a.OfferedCapabilities, a.Desirable = f.next(), f.next()
	a.Properties = field(f, Map(nil))
}

func (*Flow) descriptor() uint64 { return descFlow }

func (p *Flow) fields() List {
	return List{
		given(p.NextIncomingID), p.IncomingWindow, p.NextOutgoingID, p.OutgoingWindow, given(p.Handle),
		given(p.DeliveryCount), given(p.LinkCredit), given(p.Available), or(p.Drain), or(p.Echo),
	}
}

func (p *Flow) read(f *fields) {
	p.NextIncomingID = optional[uint32](f)
	p.IncomingWindow, p.NextOutgoingID, p.OutgoingWindow = required[uint32](f), required[uint32](f), required[uint32](f)
	p.Handle, p.DeliveryCount, p.LinkCredit, p.Available = optional[uint32](f), optional[uint32](f), optional[uint32](f), optional[uint32](f)
	p.Drain, p.Echo = field(f, false), field(f, false)
}

func (*Transfer) descriptor() uint64 { return descTransfer }

func (t *Transfer) fields() List {
	list := List{
		t.Handle, given(t.DeliveryID), nil, given(t.MessageFormat), given(t.Settled), or(t.More),
		given(t.ReceiverSettle), stateValue(t.State), or(t.Resume), or(t.Aborted), or(t.Batchable),
	}
	if t.DeliveryTag != nil {
		list[2] = t.DeliveryTag
	}
	return list
}

func (t *Transfer) read(f *fields) {
	t.Handle, t.DeliveryID, t.DeliveryTag = required[uint32](f), optional[uint32](f), field(f, []byte(nil))
	t.MessageFormat, t.Settled, t.More = optional[uint32](f), optional[bool](f), field(f, false)
	t.ReceiverSettle, t.State = optional[uint8](f), state(f)
	t.Resume, t.Aborted, t.Batchable = field(f, false), field(f, false), field(f, false)
}

func (*Disposition) descriptor() uint64 { return descDisposition }

func (p *Disposition) fields() List {
	return List{p.Role, p.First, given(p.Last), or(p.Settled), stateValue(p.State), or(p.Batchable)}
}

func (p *Disposition) read(f *fields) {
	p.Role, p.First, p.Last = required[bool](f), required[uint32](f), optional[uint32](f)
	p.Settled, p.State, p.Batchable = field(f, false), state(f), field(f, false)
}

func (*Detach) descriptor() uint64 { return descDetach }

func (p *Detach) fields() List { return List{p.Handle, or(p.Closed), p.Error.value()} }

func (p *Detach) read(f *fields) {
	p.Handle, p.Closed, p.Error = required[uint32](f), field(f, false), problem(f)
}

func (*End) descriptor() uint64 { return descEnd }
func (p *End) fields() List     { return List{p.Error.value()} }
func (p *End) read(f *fields)   { p.Error = problem(f) }

func (*Close) descriptor() uint64 { return descClose }
func (p *Close) fields() List     { return List{p.Error.value()} }
func (p *Close) read(f *fields)   { p.Error = problem(f) }

func (*Mechanisms) descriptor() uint64 { return descMechanisms }

func (m *Mechanisms) fields() List {
	names := make([]any, len(m.Names))
	for i, name := range m.Names {
		names[i] = name
	}
	return List{Array{Of: OfSymbol, Values: names}}
}

func (m *Mechanisms) read(f *fields) {
	switch v := f.next().(type) {
	case Symbol:
		m.Names = []Symbol{v}
	case Array:
		for _, name := range v.Values {
			symbol, ok := name.(Symbol)
			if !ok {
				f.wrong(name)
			}
			m.Names = append(m.Names, symbol)
		}
	default:
		f.wrong(v)
	}
}

func (*Init) descriptor() uint64 { return descInit }
func (i *Init) fields() List     { return List{i.Mechanism, i.Response, or(i.Hostname)} }
func (i *Init) read(f *fields) {
	i.Mechanism, i.Response, i.Hostname = required[Symbol](f), field(f, []byte(nil)), field(f, "")
}

func (*Outcome) descriptor() uint64 { return descOutcome }
func (o *Outcome) fields() List     { return List{o.Code} }
func (o *Outcome) read(f *fields)   { o.Code = required[uint8](f) }
