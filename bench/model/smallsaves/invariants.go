package smallsaves

import "slices"

// checkDocuments returns the rule that the documents of s violate, or "" if they violate no rule.
func (m *model) checkDocuments(s *modelState) string {
	for c := range cabinets {
		for _, message := range []string{m.checkDrawers(s, c), m.checkHead(s, c), m.checkCommitted(s, c)} {
			if message != "" {
				return message
			}
		}
	}
	for e, owner := range s.history.payload {
		if owner > 0 && s.payloads[owner-1]>>e&1 == 0 {
			return "H1: the payload of a committed event is missing"
		}
	}
	if h := &s.head.current; h.watermark > h.reserved {
		return "H5: the watermark is beyond what is reserved"
	}
	return ""
}

// checkDrawers checks that pages have no hole below the counts of a cabinet.
func (m *model) checkDrawers(s *modelState, c int) string {
	for _, d := range s.cabinets[c].current.drawers {
		if d.id == 0 || d.ordinal < s.head.current.cabinets[c].floor {
			continue
		}
		if d.count > m.Capacity {
			return "H8: a count exceeds the capacity"
		}
		if _, ok := s.pages[d.id].current.receivedEvents(d.count); !ok {
			return "H8: a slot below the count of a drawer is in no page"
		}
	}
	return ""
}

// checkHead checks the drawer that the head names.
func (m *model) checkHead(s *modelState, c int) string {
	l := &s.head.current.cabinets[c]
	if l.paged > l.fill || l.fill > m.Capacity {
		return "H8: paged, fill and capacity do not fit each other"
	}
	if l.drawer == 0 {
		return ""
	}
	if d, there := s.cabinets[c].current.find(l.drawer); there && d.sealed && d.count != l.fill {
		return "H8: a drawer is sealed at another count than the head says"
	}
	if _, ok := s.pages[l.drawer].current.receivedEvents(l.paged); !ok {
		return "H8: a slot that the head says to be in a page is in none"
	}
	return ""
}

// checkCommitted checks that each committed event that no sweep has removed is in the tail
// or below a count.
func (m *model) checkCommitted(s *modelState, c int) string {
	l := &s.head.current.cabinets[c]
	for _, r := range s.history.committedOf(c)[s.history.swept[c]:] {
		if slices.Contains(l.events(), r) || m.CountWhenLeft && l.drawer != 0 && s.pages[l.drawer].current.holdsRecord(r, l.paged) {
			continue
		}
		if !slices.ContainsFunc(s.cabinets[c].current.drawers[:], func(d drawerDocument) bool {
			return d.id != 0 && s.pages[d.id].current.holdsRecord(r, d.count)
		}) {
			return "H1: a committed event is below the count of no drawer"
		}
	}
	return ""
}

// holdsRecord reports whether r is in a slot below until.
func (p *pages) holdsRecord(r numberedEvent, until uint8) bool {
	for slot := range until {
		if found, ok := p.event(slot); ok && found == r {
			return true
		}
	}
	return false
}
