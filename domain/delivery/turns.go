package delivery

import "container/list"

// turns is a queue of values that belong to topics. takeNext alternates between two orders: the
// order in which values were added, and by turns of their topics. So a value waits for at most
// twice the number of values that were added before it. The only value of a topic waits for at
// most twice the number of topics. So a message to very many cursors of one stream does not
// delay the cursors of other streams.
type turns[V any] struct {
	added  list.List // *turn[V] values, the oldest first
	topics list.List // *topicTurn values, the next topic first
	of     map[*topic]*list.Element
	last   int // 1: the last value was chosen by the turn of its topic; 0: it was the oldest value
}

// A turn is the position of a value in both orders.
type turn[V any] struct {
	value   V
	topic   *topic
	byAge   *list.Element // in turns.added
	byTopic *list.Element // in topicTurn.values
}

// A topicTurn has the values of a topic in the order in which they were added.
type topicTurn struct {
	values list.List // *turn[V] values, the oldest first
}

func (t *turns[V]) len() int { return t.added.Len() }

func (t *turns[V]) add(of *topic, value V) *turn[V] {
	if t.of == nil {
		t.of = make(map[*topic]*list.Element)
	}
	its := t.of[of]
	if its == nil {
		its = t.topics.PushBack(&topicTurn{})
		t.of[of] = its
	}
	one := &turn[V]{value: value, topic: of}
	one.byAge = t.added.PushBack(one)
	one.byTopic = its.Value.(*topicTurn).values.PushBack(one)
	return one
}

func (t *turns[V]) remove(one *turn[V]) {
	t.added.Remove(one.byAge)
	its := t.of[one.topic]
	values := &its.Value.(*topicTurn).values
	values.Remove(one.byTopic)
	if values.Len() == 0 {
		t.topics.Remove(its)
		delete(t.of, one.topic)
	}
}

// takeNext removes and returns the next value. The queue must not be empty.
func (t *turns[V]) takeNext() V {
	t.last ^= 1
	first := t.added.Front()
	if t.last == 1 {
		its := t.topics.Front()
		t.topics.MoveToBack(its)
		first = its.Value.(*topicTurn).values.Front()
	}
	one := first.Value.(*turn[V])
	t.remove(one)
	return one.value
}
