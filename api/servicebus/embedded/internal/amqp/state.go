package amqp

// The states of a delivery, each of which may be the final outcome.
type (
	// Accepted means that the receiver has processed the message.
	Accepted struct{}

	// Rejected means that the message is invalid. Error is the reason.
	Rejected struct{ Error *Error }

	// Released means that the message was not processed.
	Released struct{}

	// Modified means that the message was not accepted. The fields tell how the message must change.
	Modified struct {
		DeliveryFailed, UndeliverableHere bool
		Annotations                       Map
	}

	// OtherState is any state that the server does not interpret, such as the states of transactions.
	OtherState struct{ Value Described }
)

func readState(f *fieldReader) any {
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
	var s any
	switch described.Descriptor {
	case uint64(descAccepted):
		s = Accepted{}
	case uint64(descRejected):
		s = Rejected{Error: errorField(inner)}
	case uint64(descReleased):
		s = Released{}
	case uint64(descModified):
		s = Modified{DeliveryFailed: fieldOr(inner, false), UndeliverableHere: fieldOr(inner, false), Annotations: fieldOr(inner, Map(nil))}
	default:
		s = OtherState{described}
	}
	if f.err == nil {
		f.err = inner.err
	}
	return s
}

func encodeState(s any) any {
	switch s := s.(type) {
	case Accepted:
		return Described{uint64(descAccepted), List{}}
	case Rejected:
		return Described{uint64(descRejected), trimNulls(List{s.Error.describedValue()})}
	case Released:
		return Described{uint64(descReleased), List{}}
	case Modified:
		return Described{uint64(descModified), trimNulls(List{zeroAsNull(s.DeliveryFailed), zeroAsNull(s.UndeliverableHere), mapOrNull(s.Annotations)})}
	case OtherState:
		return s.Value
	}
	return nil
}
