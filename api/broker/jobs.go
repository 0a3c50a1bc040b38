package broker

import (
	"net/http"
	"time"

	"github.com/messagehub/messagehub/api/internal/query"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/broker"
)

// A jobDocument is the JSON of a message's delivery to one consumer.
type jobDocument struct {
	ID         string            `json:"id"`                // id of the consumer
	Channel    string            `json:"channel,omitempty"` // set only in a list of jobs of several channels
	Consumer   string            `json:"consumer"`
	Message    string            `json:"message"`
	Status     string            `json:"status"`
	Attempts   int               `json:"attempts"`
	Due        *time.Time        `json:"due,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	History    []attemptDocument `json:"history,omitempty"`
	Retrigger  string            `json:"retriggerUrl"`
	MessageURL string            `json:"messageUrl"`
}

type attemptDocument struct {
	Number   int       `json:"number"`
	Began    time.Time `json:"began"`
	Duration float64   `json:"durationMs"`
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
}

func documentOfJob(j *broker.Job) jobDocument {
	d := jobDocument{
		ID: j.Consumer.String(), Consumer: j.Consumer.String(), Message: j.Message, Status: string(j.Status), Attempts: j.Attempts,
		Due: timeOrNil(j.Due), Reason: j.Reason,
		Retrigger: retriggerPath(j.Consumer, j.Message), MessageURL: messagePath(j.Consumer.Channel(), j.Message),
	}
	for i := range j.History {
		a := &j.History[i]
		d.History = append(d.History, attemptDocument{
			Number: a.Number, Began: a.Began.UTC(), Duration: float64(a.Took.Microseconds()) / 1000, Status: a.Status, Error: a.Error,
		})
	}
	return d
}

// lastAttempt returns the time of the last known attempt of a job, or the zero time if there is
// none.
func lastAttempt(j *broker.Job) time.Time {
	if n := len(j.History); n > 0 {
		return j.History[n-1].Began
	}
	return time.Time{}
}

func (e *edge) listDeadLetters(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	consumer, err := e.consumerOf(r)
	if err != nil {
		return err
	}
	p, err := pageOf(r)
	if err != nil {
		return err
	}
	first, err := p.firstEntry()
	if err != nil {
		return err
	}
	after := domain.EntryID{Priority: first.Priority, Number: first.Number - 1}
	dead, err := e.service.DeadLetters(r.Context(), creds, consumer, after, p.size+1)
	if err != nil {
		return err
	}
	answer := struct {
		DeadLetters []jobDocument `json:"deadLetters"`
		Next        string        `json:"next,omitempty"`
	}{DeadLetters: []jobDocument{}}
	var changed time.Time
	for i := range dead {
		if i == p.size {
			answer.Next = p.nextPath(consumerPath(consumer)+"/dlq", dead[i].Message)
			break
		}
		answer.DeadLetters = append(answer.DeadLetters, documentOfJob(&dead[i]))
		changed = laterOf(changed, lastAttempt(&dead[i]))
	}
	writeJSON(w, http.StatusOK, changed, answer)
	return nil
}

func (e *edge) retriggerMessage(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	channel, err := e.channelOf(r)
	if err != nil {
		return err
	}
	if _, err := query.Parse(r); err != nil {
		return err
	}
	if err := e.service.RetriggerMessage(r.Context(), creds, channel, e.messageOf(r)); err != nil {
		return err
	}
	writeEmpty(w, http.StatusAccepted)
	return nil
}

func (e *edge) retriggerJob(w http.ResponseWriter, r *http.Request, creds *broker.Credentials) error {
	consumer, err := e.consumerNamedBy(r, "jobId")
	if err != nil {
		return err
	}
	if _, err := query.Parse(r); err != nil {
		return err
	}
	if err := e.service.RetriggerJob(r.Context(), creds, consumer, e.messageOf(r)); err != nil {
		return err
	}
	writeEmpty(w, http.StatusAccepted)
	return nil
}
