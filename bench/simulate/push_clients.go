package simulate

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// !!
func (p *pushSimulation) anyNode(rng random.Source) *pushNode { return p.nodeAt(rng.IntN(pushNodes)) }

// createReceiver creates a receiver and its cursor through any node.
func (p *pushSimulation) createReceiver(owner *baseClient, i int) error {
	// The id must not have the form of a subscription's cursor, because the store removes the entries of subscriptions
	// that have no definition.
	id, err := domain.ParseCursorID(fmt.Sprint("c|receiver-", i))
	if err != nil {
		return err
	}
	r := p.newReceiver(id, p.stream, fmt.Sprint("receiver-", i), i)
	for {
		if _, ok := owner.awaitTurn("creates cursor " + id.String()); !ok {
			return p.ctx.Err()
		}
		if n := p.anyNode(owner.rng); n != nil {
			err := n.store.Create(p.ctx, id, domain.Standing{Stream: p.stream})
			if err == nil || domain.KindOf(err) == domain.Conflict {
				n.notifyCreated(id, p.stream)
				r.isCreated = true
				return nil
			}
		}
		if !owner.pause(time.Second) {
			return p.ctx.Err()
		}
	}
}

// A pushSender publishes messages through any node.
type pushSender struct {
	baseClient
	sim          *pushSimulation
	messageCount int // number of messages so far
}

func (s *pushSender) sendMany() error {
	for range 4 + s.rng.IntN(10) {
		if !s.pause(time.Duration(s.rng.IntN(5000)) * time.Millisecond) {
			return nil
		}
		if err := s.publishBatch(); err != nil {
			return err
		}
	}
	return nil
}

// publishBatch publishes several messages. Messages with ids are repeated until they are accepted; messages without ids
// are repeated only if they were certainly not stored.
func (s *pushSender) publishBatch() error {
	messages := make([]domain.Message, 1+s.rng.IntN(5))
	hasIDs := s.rng.IntN(2) == 0
	for i := range messages {
		s.messageCount++
		messages[i] = domain.Message{
			Priority: []int{0, 0, 4}[s.rng.IntN(3)], ContentType: "application/json", Payload: fmt.Appendf(nil, `{"from":%q,"n":%d,"fill":"%0*d"}`, s.who, s.messageCount, s.rng.IntN(300), 0),
		}
		if hasIDs {
			messages[i].ID = fmt.Sprint(s.who, "-", s.messageCount)
		}
	}
	for {
		if _, ok := s.awaitTurn("publishes " + fmt.Sprint(len(messages))); !ok {
			return nil
		}
		if n := s.sim.anyNode(s.rng); n != nil {
			appended, err := n.store.Append(s.sim.ctx, s.sim.stream, messages)
			if err == nil {
				return s.noteAccepted(n, messages, appended)
			}
			if domain.KindOf(err) == domain.Uncertain {
				if !hasIDs {
					return nil
				}
				s.sim.MarkReached("a message was sent again after its outcome was not known")
			}
		}
		if !s.pause(time.Second) {
			return nil
		}
	}
}

func (s *pushSender) noteAccepted(n *pushNode, messages []domain.Message, appended []repository.Appended) error {
	n.engine.Published(s.sim.stream, messages, appended)
	for i, a := range appended {
		if a.Outcome == repository.AppendConflict {
			return fmt.Errorf("message %q is refused as a conflict, but its content is the same", messages[i].ID)
		}
	}
	s.sim.pmu.Lock()
	defer s.sim.pmu.Unlock()
	s.sim.accepted += len(messages)
	return nil
}
