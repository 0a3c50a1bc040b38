package wire

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/engine"
)

// serveBulk executes independent operations in one physical partition. Clients combine many single
// operations into a bulk request to save round trips. Each operation names its logical partition.
// serveBulk returns 200 if all operations succeeded, otherwise 207.
func (s *Server) serveBulk(r *serverRequest, c *engine.Container) (Response, error) {
	_, _, at, err := parseScope(r, c)
	if err != nil {
		return Response{}, err
	}
	consistency, err := s.parseConsistency(r)
	if err != nil {
		return Response{}, err
	}
	body, err := r.readBody()
	if err != nil {
		return Response{}, err
	}
	parts, err := splitBatch(body)
	if err != nil {
		return Response{}, err
	}
	if err := s.admitWrite(r, c, at); err != nil {
		return Response{}, err
	}
	results := make([]engine.Result, len(parts))
	var ops []engine.PlacedOp
	var places []int // indexes of ops in the results
	for i, part := range parts {
		op, err := parsePlaced(r.Context(), c, at, part, r.allowsAnyID())
		var wrong *engine.Error
		switch {
		case errors.As(err, &wrong):
			results[i] = engine.Result{Status: wrong.Status, Message: wrong.Message}
		case err != nil:
			return Response{}, err
		default:
			ops, places = append(ops, op), append(places, i)
		}
	}
	written, err := s.engine.WriteEach(r.Context(), c, ops, consistency)
	if err != nil {
		return Response{}, err
	}
	for i, result := range written.Results {
		results[places[i]] = result
	}
	written.Results = results
	s.recordCharge(r, written.Charge)
	r.answer.Set("x-ms-session-token", sessionTokens(c, at, written.Session))
	r.answer.Set("x-ms-item-count", strconv.Itoa(len(results)))
	status := http.StatusOK
	for _, result := range results {
		if result.Status >= 300 {
			status = http.StatusMultiStatus
		}
	}
	return Response{Status: status, Body: resultsJSON(written, r.wantsMinimal())}, nil
}

// parsePlaced reads an operation that names its partition. It fails if the partition is not in the
// range at: the client then routed the operation before the range was split.
func parsePlaced(ctx context.Context, c *engine.Container, at *engine.Range, part []byte, anyID bool) (engine.PlacedOp, error) {
	var op engine.PlacedOp
	var key string
	if err := parseOperation(ctx, c, "", part, &op.Op, anyID, &key); err != nil {
		return op, err
	}
	var err error
	if op.Partition, err = c.ParsePartition(key); err != nil {
		return op, err
	}
	if at != nil && c.RangeOf(op.Partition).ID != at.ID {
		return op, &engine.Error{Status: http.StatusGone, SubStatus: 1002, Message: "partition key " + key + " is not in range " + at.ID}
	}
	return op, nil
}
