package consumerhistory

import (
	"fmt"
	"strings"
)

func (o *consumerOperation) String() string {
	span := fmt.Sprintf("client %d, %d to %d: ", o.client, o.began, o.ended)
	switch o.kind {
	case call:
		return fmt.Sprintf("%scall with %s, delivered: %t", span, o.entries[0], o.isDelivered)
	case peek:
		return fmt.Sprintf("%speek: bundle %q with %s", span, o.bundle, strings.Join(o.entries, ", "))
	case dequeue:
		return fmt.Sprintf("%sdequeue %q: %s", span, o.bundle, [...]string{"unknown", "done", "not found"}[o.outcome])
	case end:
	}
	return span + "end"
}

func (v Verdict) String() string {
	return [...]string{"gave up", "skipped", "legal", "illegal"}[v]
}
