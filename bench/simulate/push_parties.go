package simulate

import (
	"fmt"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// anyNode returns a node that runs, nil if the party has to wait for one.
func (p *pushWorld) anyNode(d dice) *pushNode { return p.node(d.n(pushNodes)) }

// subscribes creates a receiver and its cursor, by any node.
func (p *pushWorld) subscribes(owner *party, i int) error {
	// It is no subscription: the store removes the entry of one that has no definition.
	id, err := domain.ParseCursorID(fmt.Sprint("c|receiver-", i))
	if err != nil {
		return err
	}
	r := p.newReceiverOf(id, p.stream, fmt.Sprint("receiver-", i), i)
	for {
		if _, ok := owner.turn("creates cursor " + id.String()); !ok {
			return p.ctx.Err()
		}
		if n := p.anyNode(owner.d); n != nil {
			err := n.store.Create(p.ctx, id, domain.Standing{Stream: p.stream})
			if err == nil || domain.KindOf(err) == domain.Conflict {
				n.created(id, p.stream)
				r.isCreated = true
				return nil
			}
		}
		if !owner.pause(time.Second) {
			return p.ctx.Err()
		}
	}
}

// A pushSender publishes messages by any node.
type pushSender struct {
	party
	p *pushWorld
	n int // messages so far
}

func (s *pushSender) sends() error {
	for range 4 + s.d.n(10) {
		if !s.pause(time.Duration(s.d.n(5000)) * time.Millisecond) {
			return nil
		}
		if err := s.batch(); err != nil {
			return err
		}
	}
	return nil
}

// batch publishes some messages. With ids they are sent again until they are accepted;
// without, only if they were not.
func (s *pushSender) batch() error {
	messages := make([]domain.Message, 1+s.d.n(5))
	hasIDs := s.d.n(2) == 0
	for i := range messages {
		s.n++
		messages[i] = domain.Message{
			Priority: []int{0, 0, 4}[s.d.n(3)], ContentType: "application/json", Payload: fmt.Appendf(nil, `{"from":%q,"n":%d,"fill":"%0*d"}`, s.who, s.n, s.d.n(300), 0),
		}
		if hasIDs {
			messages[i].ID = fmt.Sprint(s.who, "-", s.n)
		}
	}
	for {
		if _, ok := s.turn("publishes " + fmt.Sprint(len(messages))); !ok {
			return nil
		}
		if n := s.p.anyNode(s.d); n != nil {
			appended, err := n.store.Append(s.p.ctx, s.p.stream, messages)
			if err == nil {
				return s.accepted(n, messages, appended)
			}
			if domain.KindOf(err) == domain.Uncertain {
				if !hasIDs {
					return nil
				}
				s.p.reached("a message was sent again after its outcome was not known")
			}
		}
		if !s.pause(time.Second) {
			return nil
		}
	}
}

func (s *pushSender) accepted(n *pushNode, messages []domain.Message, appended []repository.Appended) error {
	n.engine.Published(s.p.stream, messages, appended)
	for i, a := range appended {
		if a.Outcome == repository.AppendConflict {
			return fmt.Errorf("message %q is refused, as if it had other content than before", messages[i].ID)
		}
	}
	s.p.pmu.Lock()
	defer s.p.pmu.Unlock()
	s.p.accepted += len(messages)
	return nil
}
