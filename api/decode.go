package api

import (
	"errors"
	"io"
	"os"

	"github.com/messagehub/messagehub/api/internal/eventjson"
)

// decodeEvents reads the body of POST /v1/data-available, a JSON array of events. It returns the
// valid events and the faults of invalid ones. It fails if the body cannot be read to its end.
func decodeEvents(r io.Reader, limits Limits) (*eventjson.Events, error) {
	sent, err := eventjson.Read(r, eventjson.Limits{
		Events: limits.Events, Payload: limits.Payload, PayloadDepth: limits.PayloadDepth, PayloadNumber: limits.PayloadNumber,
	})
	if err == nil {
		return sent, nil
	}
	if syntax, ok := errors.AsType[*eventjson.SyntaxError](err); ok {
		// The problem lists up to maxFaults faults, and the syntax error last.
		found := faultsOf(sent.Faults.List)
		return nil, &problemError{
			problem: notJSON,
			detail:  "Nothing was stored: the body must be one JSON array of events.",
			faults:  append(found[:min(len(found), maxFaults-1)], bodyFault{Pointer: syntax.Pointer, Detail: syntax.Error()}),
		}
	}
	if many, ok := errors.AsType[*eventjson.TooManyError](err); ok {
		return nil, refuse(tooManyEvents, "Nothing was stored: there are %v. Send them in several requests.", many)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &problemError{problem: bodySlow, close: true, detail: "Nothing was stored: the body came too slowly, or was not complete at the deadline of the request. Send fewer events at a time.", cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &problemError{problem: bodyCut, detail: "Nothing was stored: the connection ended before the body did. Send the request again.", cause: err}
	}
	if e, ok := errors.AsType[*bodyError](err); ok {
		return nil, e.problem("Nothing was stored")
	}
	return nil, err
}

// maxFaults is the maximum number of faults that a problem lists.
const maxFaults = eventjson.MaxFaults

func faultsOf(list []eventjson.Fault) []bodyFault {
	faults := make([]bodyFault, len(list), len(list)+1)
	for i, f := range list {
		faults[i] = faultOf(f)
	}
	return faults
}

func faultOf(f eventjson.Fault) bodyFault {
	return bodyFault{Pointer: f.Pointer + f.Inside, Detail: f.Detail, index: f.Index, inside: len(f.Inside)}
}
