package rawjson

import "slices"

// A Step is one step of a Path: to the property Name, or to the element Index if Array is set.
type Step struct {
	Name  string
	Index int
	Array bool
}

// A Path leads from a document to a value in it. An empty Path is the document itself.
type Path []Step

// An Extractor finds the values of several paths in one pass over a document. It stops when all are found. It is safe
// for concurrent use.
type Extractor struct {
	root  *pathNode
	count int
}

// A pathNode is a node in the tree of all paths.
type pathNode struct {
	slots []int // slots of the paths that end at this node
	steps []Step
	next  []*pathNode
	at    map[Step]int // index of each step; nil if there are few steps
}

// manySteps is the number of steps from which a map is faster than a search.
const manySteps = 16

// NewExtractor returns an Extractor that stores the value of paths[i] in slot i.
func NewExtractor(paths []Path) *Extractor {
	x := &Extractor{root: &pathNode{}, count: len(paths)}
	for slot, path := range paths {
		at := x.root
		for _, step := range path {
			at = at.followStep(step)
		}
		at.slots = append(at.slots, slot)
	}
	return x
}

func (s *pathNode) followStep(step Step) *pathNode {
	if i := s.stepIndex(step); i >= 0 {
		return s.next[i]
	}
	child := &pathNode{}
	if s.at != nil {
		s.at[step] = len(s.steps)
	}
	s.steps = append(s.steps, step)
	s.next = append(s.next, child)
	if len(s.steps) == manySteps {
		s.at = map[Step]int{}
		for i, have := range s.steps {
			s.at[have] = i
		}
	}
	return child
}

// stepIndex returns the index of a step, or -1 if the node lacks it.
func (s *pathNode) stepIndex(step Step) int {
	if s.at == nil {
		return slices.Index(s.steps, step)
	}
	if i, ok := s.at[step]; ok {
		return i
	}
	return -1
}

// Slots returns how many slots Extract needs.
func (x *Extractor) Slots() int { return x.count }

// Extract stores the values that it finds in doc in slots, and nil for missing ones. The values share memory with doc.
func (x *Extractor) Extract(doc []byte, slots [][]byte) {
	clear(slots)
	w := extraction{doc: doc, slots: slots, missing: x.count - len(x.root.slots)}
	for _, slot := range x.root.slots { // the value of an empty path is the whole document
		slots[slot] = doc
	}
	if w.missing > 0 {
		w.visitValue(x.root, 0)
	}
}

type extraction struct {
	doc     []byte
	slots   [][]byte
	missing int
}

// visitValue returns the index after the value at i, or -1 if all values are found or the text ends.
func (w *extraction) visitValue(s *pathNode, i int) int {
	if i < 0 || i >= len(w.doc) {
		return -1
	}
	end := 0
	switch {
	case len(s.steps) > 0 && w.doc[i] == '{':
		end = w.visitObject(s, i)
	case len(s.steps) > 0 && w.doc[i] == '[':
		end = w.visitArray(s, i)
	default:
		end = Skip(w.doc, i)
	}
	if len(s.slots) == 0 || w.missing == 0 {
		return end
	}
	if end < 0 { // all inner values are found, but the end of this value is still needed
		if end = Skip(w.doc, i); end < 0 {
			return -1
		}
	}
	for _, slot := range s.slots {
		if w.slots[slot] == nil { // if a name occurs twice, use the first
			w.slots[slot] = w.doc[i:end]
			w.missing--
		}
	}
	if w.missing == 0 {
		return -1
	}
	return end
}

func (w *extraction) visitObject(s *pathNode, i int) int {
	doc, left := w.doc, len(s.steps)
	for i++; i < len(doc) && doc[i] == '"'; {
		nameEnd := skipString(doc, i)
		if nameEnd < 0 || nameEnd >= len(doc) {
			return -1
		}
		name, value := doc[i:nameEnd], nameEnd+1
		var end int
		if next := s.findProperty(name); next != nil && left > 0 {
			left--
			if end = w.visitValue(next, value); end < 0 {
				return -1
			}
		} else if end = Skip(doc, value); end < 0 {
			return -1
		}
		if i = end; i < len(doc) && doc[i] == ',' {
			i++
		}
	}
	return skipClosing(doc, i, '}')
}

// skipClosing returns the index after the closing bracket at i, or -1 if none exists.
func skipClosing(doc []byte, i int, bracket byte) int {
	if i >= len(doc) || doc[i] != bracket {
		return -1
	}
	return i + 1
}

func (s *pathNode) findProperty(name []byte) *pathNode {
	if s.at != nil {
		text, ok := Unquote(name)
		if !ok {
			return nil
		}
		return s.findChild(Step{Name: string(text)})
	}
	for i, step := range s.steps {
		if !step.Array && IsName(name, step.Name) {
			return s.next[i]
		}
	}
	return nil
}

func (w *extraction) visitArray(s *pathNode, i int) int {
	doc, index := w.doc, 0
	for i++; i < len(doc) && doc[i] != ']'; index++ {
		var end int
		if next := s.findElement(index); next != nil {
			end = w.visitValue(next, i)
		} else {
			end = Skip(doc, i)
		}
		if end < 0 {
			return -1
		}
		if i = end; i < len(doc) && doc[i] == ',' {
			i++
		}
	}
	return skipClosing(doc, i, ']')
}

func (s *pathNode) findChild(step Step) *pathNode {
	if i := s.stepIndex(step); i >= 0 {
		return s.next[i]
	}
	return nil
}

func (s *pathNode) findElement(index int) *pathNode {
	if s.at != nil {
		return s.findChild(Step{Array: true, Index: index})
	}
	for i, step := range s.steps {
		if step.Array && step.Index == index {
			return s.next[i]
		}
	}
	return nil
}
