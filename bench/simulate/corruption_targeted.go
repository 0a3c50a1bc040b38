package simulate

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/messagehub/messagehub/bench/simulate/containers"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Targeted damage affects documents that a hub reads next; random damage rarely does.

// corruptTarget damages one document or blob that a client is about to use, and describes the damage. If it finds no
// target, the description says so.
func (v *corruptor) corruptTarget(recipient string) string {
	all := v.sim.env.stored.documentsOf(recipient)
	of := func(kind string) (found []storedItem) {
		for _, d := range all {
			if d.kindName() == kind {
				found = append(found, d.clone())
			}
		}
		return found
	}
	one := func(kind string) *storedItem {
		if found := of(kind); len(found) > 0 {
			return &found[v.rng.IntN(len(found))]
		}
		return nil
	}
	v.sim.MarkReached("a document or blob was damaged")
	kind := v.rng.IntN(12)
	if v.sim.faults.domainsFail.Load() && v.rng.IntN(2) == 0 { // prefer bundles whose content the domain has not produced
		kind = []int{7, 9, 10, 10}[v.rng.IntN(4)]
	}
	switch kind {
	case 0, 11:
		return v.ageBundles(of("bundle"), one("page"))
	case 1:
		return v.renameCabinet(one("head"))
	case 2:
		return v.forgePage(one("page"))
	case 3:
		return v.duplicateEvents(of("page"))
	case 4:
		return v.addNotice(recipient)
	case 5:
		return v.breakField(one("drawer"), "weight", "position", "sealed", "count", "operation")
	case 6:
		return v.breakField(one("entry"), "nextSequence", "ordinal")
	case 7:
		return v.removeContent(of("bundle"), one("page"))
	case 8:
		return v.removeDocument(one([]string{"drawer", "page", "bundle", "entry", "gate"}[v.rng.IntN(5)]))
	case 9:
		if v.rng.IntN(4) == 0 {
			return v.breakField(one("record"), "group", "bundle")
		}
		d := one("bundle")
		if open := v.pickOpen(of("bundle")); open != nil && v.rng.IntN(3) > 0 {
			d = open
		}
		return v.breakField(d, "count", "format", "group", "cabinet", "content", "bodyDigest", "state", "ranges")
	case 10:
		return v.breakFailureCount(of("bundle"))
	default:
		var objects []string
		for _, d := range documentsInUse(all) {
			objects = append(objects, d.blobNames()...)
		}
		if len(objects) == 0 {
			return "finds nothing"
		}
		return v.corruptBlob(objects[v.rng.IntN(len(objects))])
	}
}

// pickOpen returns a random open bundle, or nil.
func (v *corruptor) pickOpen(bundles []storedItem) *storedItem {
	bundles = slices.DeleteFunc(bundles, func(d storedItem) bool { return d.fields["state"] != "open" })
	if len(bundles) == 0 {
		return nil
	}
	return &bundles[v.rng.IntN(len(bundles))]
}

func (v *corruptor) putDocument(d *storedItem, how string) string {
	if d == nil {
		return "finds nothing"
	}
	return d.kindName() + " " + d.id + " " + how + describeRefusal(v.access.putDocument(context.WithoutCancel(v.sim.ctx), *d))
}

// ageBundles changes the open bundles to the format of an older version, and may damage a page as well.
func (v *corruptor) ageBundles(bundles []storedItem, page *storedItem) string {
	how := "finds no bundle"
	for _, d := range bundles {
		if d.fields["state"] == "open" {
			wrong := v.rng.IntN(3)
			if wrong > 0 {
				delete(d.fields, "bodyLength")
				delete(d.fields, "bodyDigest")
			}
			if wrong < 2 {
				d.fields["count"] = v.offByOne(d.fields["count"])
			}
			how = v.putDocument(&d, "is as old ones are")
		}
	}
	switch {
	case page == nil:
	case v.rng.IntN(3) == 0:
		how += ", and page " + page.id + " is missing" + describeRefusal(v.access.removeDocument(context.WithoutCancel(v.sim.ctx), *page))
	case v.rng.IntN(2) == 0:
		page.fields["events"] = "AAAA"
		how += ", and " + v.putDocument(page, "is nonsense")
	}
	return how
}

// offByOne returns count plus or minus one.
func (v *corruptor) offByOne(count any) any {
	n, _ := count.(json.Number)
	events, err := n.Int64()
	if err != nil {
		return count
	}
	return events + int64(1-2*v.rng.IntN(2))
}

// renameCabinet replaces the name of a cabinet in a head by an invalid or unknown name.
func (v *corruptor) renameCabinet(head *storedItem) string {
	if head == nil {
		return "finds no head"
	}
	cabinets, _ := head.fields["cabinets"].(map[string]any)
	names := slices.Sorted(maps.Keys(cabinets))
	if len(names) == 0 {
		return "finds no cabinet"
	}
	other := strangeNames[v.rng.IntN(len(strangeNames))]
	if v.rng.IntN(3) == 0 {
		retention, ok := head.fields["retention"].(map[string]any)
		if !ok {
			retention = make(map[string]any)
		}
		retention[other] = map[string]any{"floor": 3}
		head.fields["retention"] = retention
		return v.putDocument(head, fmt.Sprintf("retains a cabinet %q", other))
	}
	cabinets[other] = cloneValue(cabinets[names[0]])
	if v.rng.IntN(2) == 0 {
		delete(cabinets, names[0])
	}
	return v.putDocument(head, fmt.Sprintf("has a cabinet %q", other))
}

// forgePage changes a byte of a page and updates the checksum, so that the checksum does not reveal the damage.
func (v *corruptor) forgePage(page *storedItem) string {
	if page == nil {
		return "finds no page"
	}
	text, _ := page.fields["events"].(string)
	events, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(events) < 5 {
		return "finds no events"
	}
	end, at := len(events)-4, 0
	if v.rng.IntN(3) > 0 {
		at = v.rng.IntN(end)
	}
	events[at] ^= 1 << v.rng.IntN(8)
	v.hasForgedPage = true
	binary.LittleEndian.PutUint32(events[end:], repository.SumOf(events[:end]))
	page.fields["events"] = base64.StdEncoding.EncodeToString(events)
	return v.putDocument(page, fmt.Sprintf("has another byte %d, and the checksum of that", at))
}

// duplicateEvents replaces the events of a page by the events of a different page.
func (v *corruptor) duplicateEvents(pages []storedItem) string {
	if len(pages) < 2 {
		return "finds no two pages"
	}
	i := v.rng.IntN(len(pages))
	from, to := pages[i], &pages[(i+1+v.rng.IntN(len(pages)-1))%len(pages)]
	to.fields["events"] = from.fields["events"]
	delete(to.fields, "sum") // pages of an older version have no checksum
	v.hasForgedPage = true
	return v.putDocument(to, "has the events of "+from.id+" of "+from.key)
}

// addNotice stores a notice that no Dequeue wrote.
func (v *corruptor) addNotice(recipient string) string {
	number := 1 + v.rng.IntN(20)
	group := v.sim.plan.groups[v.rng.IntN(len(v.sim.plan.groups))]
	d := &storedItem{container: containers.Bundles, key: recipient, id: fmt.Sprintf("notice|%s|%020d", group, number), fields: map[string]any{
		"kind": "notice", "group": group, "number": number, "origin": domain.TimeSeries.String(), "bundle": uuid.Nil.String(), "list": "none", "since": time.Now().UnixMilli(),
	}}
	for _, name := range [...]string{"group", "origin", "bundle"} {
		if v.rng.IntN(6) == 0 {
			d.fields[name] = "|"
		}
	}
	if v.rng.IntN(6) == 0 {
		d.fields["number"] = number + 1
	}
	text, _ := json.Marshal(d.fields) // strings and numbers can be encoded
	return v.putDocument(d, "is "+string(text))
}

// breakField damages one of the named fields of a document, and describes the damage.
func (v *corruptor) breakField(d *storedItem, fields ...string) string {
	if d == nil {
		return "finds nothing"
	}
	name := fields[v.rng.IntN(len(fields))]
	if v.rng.IntN(2) == 0 {
		d.fields[name] = retypeValue(d.fields[name])
	} else {
		d.fields[name] = changeValue(v.rng, d.fields[name])
	}
	return v.putDocument(d, fmt.Sprintf("has the %s %q", name, fmt.Sprint(d.fields[name])))
}

// removeDocument deletes a document.
func (v *corruptor) removeDocument(d *storedItem) string {
	if d == nil {
		return "finds nothing"
	}
	return d.kindName() + " " + d.id + " is missing" + describeRefusal(v.access.removeDocument(context.WithoutCancel(v.sim.ctx), *d))
}

// breakFailureCount replaces the failure count of an open bundle by a value that hubs cannot read.
func (v *corruptor) breakFailureCount(bundles []storedItem) string {
	for _, d := range bundles {
		if trouble, ok := d.fields["trouble"].(map[string]any); ok && d.fields["state"] == "open" {
			trouble["failures"] = "many"
			return v.putDocument(&d, "counts no failures of its domain")
		}
	}
	return "finds no bundle on request"
}

// removeContent deletes an open bundle, its content, or the event list for its domain.
func (v *corruptor) removeContent(bundles []storedItem, page *storedItem) string {
	for _, d := range bundles {
		if d.fields["state"] != "open" {
			continue
		}
		if object, _ := d.fields["object"].(string); object != "" && v.rng.IntN(3) > 0 {
			_, err := v.access.blobs.DeleteBlob(context.WithoutCancel(v.sim.ctx), contentContainer, object, nil)
			return "blob " + object + " is missing" + describeRefusal(err)
		}
		if list, _ := d.fields["list"].(string); list != "" && v.rng.IntN(3) > 0 {
			_, err := v.access.blobs.DeleteBlob(context.WithoutCancel(v.sim.ctx), exchangeContainer, list, nil)
			how := "blob " + list + " is missing" + describeRefusal(err)
			switch v.rng.IntN(4) {
			case 0:
				how += ", and " + v.removeDocument(page)
			case 1:
				d.fields["count"] = v.offByOne(d.fields["count"])
				how += ", and " + v.putDocument(&d, "has another count")
			case 2:
				how += ", and " + v.forgePage(page)
			}
			return how
		}
		return "bundle " + d.id + " is missing" + describeRefusal(v.access.removeDocument(context.WithoutCancel(v.sim.ctx), d))
	}
	return "finds no open bundle"
}
