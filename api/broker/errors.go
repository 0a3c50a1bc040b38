package broker

import (
	"fmt"

	"github.com/messagehub/messagehub/domain"
)

// A FormError describes what is wrong with one field of a form.
type FormError struct{ Field, Detail string }

func (e *FormError) Error() string { return e.Field + ": " + e.Detail }

// A MediaTypeError means that the route does not accept the media type or content coding of a body.
type MediaTypeError struct{ Header, Got, Want string }

func (e *MediaTypeError) Error() string {
	return fmt.Sprintf("%s %q is not accepted; send %s", e.Header, domain.Shorten(e.Got), e.Want)
}
