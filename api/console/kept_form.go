package console

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// A form may be submitted after its session has ended. Its text is then stored in encrypted cookies
// until the form is shown again.
const (
	keptCookie = "form-"
	keptTime   = 15 * time.Minute
	keptChunk  = 3500 // maximum bytes in one cookie; browsers accept 4096, including the name
	keptChunks = 4
)

// A keptForm contains the text of a form, and the path of its page.
type keptForm struct {
	Path   string     `json:"path"`
	Fields url.Values `json:"fields"`
}

// keepForm stores the text of the submitted form in cookies. It does not store a text that requires
// more than 4 cookies.
func (v *visit) keepForm() {
	fields := url.Values{}
	for name, values := range v.form {
		if name != tokenField && name != passwordField {
			fields[name] = values
		}
	}
	expires := v.opts.Clock().Add(keptTime)
	text := v.sealer.seal(keptCookie, keptForm{v.r.URL.EscapedPath(), fields}, expires)
	if len(text) > keptChunk*keptChunks {
		return
	}
	for i := range keptChunks {
		chunk := text[:min(keptChunk, len(text))]
		text = text[len(chunk):]
		if chunk != "" {
			v.setCookie(keptCookie+strconv.Itoa(i), chunk, expires, http.SameSiteStrictMode)
		} else if v.cookie(keptCookie+strconv.Itoa(i)) != "" {
			v.setCookie(keptCookie+strconv.Itoa(i), "", time.Time{}, http.SameSiteStrictMode)
		}
	}
}

// readKept reads the stored text of this page's form from the cookies, and deletes these cookies.
func (v *visit) readKept() {
	text := ""
	for i := range keptChunks {
		text += v.cookie(keptCookie + strconv.Itoa(i))
	}
	if text == "" {
		return
	}
	var form keptForm
	_, isValid := v.sealer.open(keptCookie, text, &form)
	if isValid && form.Path != v.r.URL.EscapedPath() {
		return // the stored text belongs to another page
	}
	if isValid {
		v.kept = form.Fields
	}
	for i := range keptChunks {
		if name := keptCookie + strconv.Itoa(i); v.cookie(name) != "" {
			v.setCookie(name, "", time.Time{}, http.SameSiteStrictMode)
		}
	}
}
