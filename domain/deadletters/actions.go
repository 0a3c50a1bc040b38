package deadletters

import (
	"context"

	"github.com/messagehub/messagehub/domain"
)

// ReadContent returns a dead letter with its body. It stores a record of the action before it returns
// the body. It fails with NotFound if the dead letter does not exist.
func (s *Service) ReadContent(ctx context.Context, queue string, number int64, by AdminAction) (*Content, error) {
	if err := by.Check(); err != nil {
		return nil, err
	}
	if _, err := s.Queue(queue); err != nil {
		return nil, err
	}
	found, err := s.opts.Bus.Read(ctx, queue, number)
	if err != nil {
		return nil, markBusError(err)
	}
	_, err = s.opts.Actions.BeginDeadLetterAction(ctx, Record{
		AdminAction: by, What: lookAction, Queue: queue, Number: number, MessageID: found.MessageID, Reason: found.Reason, Outcome: doneOutcome, Letters: 1,
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Resend sends a dead letter again. It fails with NotFound if the dead letter does not exist,
// and with Conflict if its queue does not accept dead letters again.
func (s *Service) Resend(ctx context.Context, queue string, number int64, by AdminAction) error {
	return s.actOnOne(ctx, resendAction, queue, number, by)
}

// Delete deletes a dead letter. It fails with NotFound if the dead letter does not exist.
func (s *Service) Delete(ctx context.Context, queue string, number int64, by AdminAction) error {
	return s.actOnOne(ctx, deleteAction, queue, number, by)
}

func (s *Service) actOnOne(ctx context.Context, what, queue string, number int64, by AdminAction) error {
	if err := s.check(what, queue, by); err != nil {
		return err
	}
	found, err := s.opts.Bus.Peek(ctx, queue, number-1, 1)
	if err != nil {
		return markBusError(err)
	}
	if len(found) == 0 || found[0].Number != number {
		return missingError(queue, number)
	}
	record, err := s.opts.Actions.BeginDeadLetterAction(ctx, Record{
		AdminAction: by, What: what, Queue: queue, Number: number, MessageID: found[0].MessageID, Reason: found[0].Reason,
	})
	if err != nil {
		return err
	}
	record.Letters, err = s.carryOut(ctx, what, queue, []int64{number}, by)
	if err == nil && record.Letters == 0 {
		err = missingError(queue, number) // a concurrent action removed the dead letter
	}
	s.recordOutcome(ctx, &record, err)
	return err
}

func missingError(queue string, number int64) error {
	return domain.Errorf(domain.NotFound, "queue %s has no dead letter with the sequence number %d; it may have been sent again or deleted meanwhile", queue, number)
}

func (s *Service) check(what, queue string, by AdminAction) error {
	if err := by.Check(); err != nil {
		return err
	}
	q, err := s.Queue(queue)
	if err == nil && what == resendAction && q.NoResend != "" {
		err = domain.Errorf(domain.Conflict, "dead letters of queue %s are not sent again: %s", queue, q.NoResend)
	}
	return err
}

func (s *Service) carryOut(ctx context.Context, what, queue string, numbers []int64, by AdminAction) (n int, err error) {
	if what == resendAction {
		n, err = s.opts.Bus.Resend(ctx, queue, numbers, by.Who)
	} else {
		n, err = s.opts.Bus.Delete(ctx, queue, numbers)
	}
	return n, markBusError(err)
}

// maxAtOnce is the maximum number of dead letters in one action.
const maxAtOnce = 100

// A Selection names several dead letters of a queue: all with one reason whose numbers are above
// After and at most Through.
type Selection struct {
	Reason  string // required
	After   int64
	Through int64 // required
}

// Progress is the result of an action on several dead letters.
type Progress struct {
	Letters int    // number of dead letters that were sent again or deleted
	Next    int64  // Selection.After for the next action; 0: no selected dead letter remains
	Failure string // the error that ended the action after some dead letters; "": no error
}

// ResendSome sends up to 100 of the selected dead letters again, in the order of their numbers.
// If Progress.Next is not 0, the caller sets Selection.After to it and calls ResendSome again.
func (s *Service) ResendSome(ctx context.Context, queue string, of Selection, by AdminAction) (Progress, error) {
	return s.actOnSome(ctx, resendAction, queue, of, by)
}

// DeleteSome deletes dead letters. Its parameters and results are those of ResendSome.
func (s *Service) DeleteSome(ctx context.Context, queue string, of Selection, by AdminAction) (Progress, error) {
	return s.actOnSome(ctx, deleteAction, queue, of, by)
}

func (s *Service) actOnSome(ctx context.Context, what, queue string, of Selection, by AdminAction) (Progress, error) {
	if err := s.check(what, queue, by); err != nil {
		return Progress{}, err
	}
	switch {
	case of.Reason == "":
		return Progress{}, domain.Errorf(domain.Invalid, "reason: want the reason that the dead letters have")
	case of.After < 0 || of.Through <= of.After:
		return Progress{}, domain.Errorf(domain.Invalid, "through: want the highest sequence number that the action applies to, above after")
	}
	page, err := s.scan(ctx, queue, Query{After: of.After, Reason: of.Reason, Limit: maxAtOnce})
	if err != nil {
		return Progress{}, err
	}
	next := page.Next
	if next >= of.Through {
		next = 0
	}
	var numbers []int64
	for i := range page.DeadLetters {
		if n := page.DeadLetters[i].Number; n <= of.Through {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		return Progress{Next: next}, nil
	}
	record, err := s.opts.Actions.BeginDeadLetterAction(ctx, Record{AdminAction: by, What: what, Queue: queue, Reason: of.Reason})
	if err != nil {
		return Progress{}, err
	}
	record.Letters, err = s.carryOut(ctx, what, queue, numbers, by)
	s.recordOutcome(ctx, &record, err)
	switch {
	case err == nil:
		return Progress{Letters: record.Letters, Next: next}, nil
	case record.Letters == 0:
		return Progress{}, err
	default: // report the error together with the dead letters that were processed before it
		return Progress{Letters: record.Letters, Next: of.After, Failure: err.Error()}, nil
	}
}
