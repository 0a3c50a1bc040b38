package repository

import "github.com/messagehub/messagehub/domain"

// A Queue describes the unacknowledged events of a recipient in one group.
type Queue struct {
	Group   domain.Group
	Waiting domain.Backlog // all unacknowledged events, including the events of Open
	Open    *domain.Bundle // the open bundle, or nil
}

// Acknowledged is the result of an Acknowledge: the closed bundle, and the backlog after it.
type Acknowledged struct {
	domain.Bundle
	Remaining domain.Backlog // events that wait after the bundle, in the groups of the Peek that opened the bundle
	HasNotice bool           // the outbox has a notice of the bundle
}
