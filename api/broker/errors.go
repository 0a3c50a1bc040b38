package broker

import (
	"fmt"

	"github.com/messagehub/messagehub/domain"
)

// A FormError reports what is wrong with a field of a form.
type FormError struct{ Field, Detail string }

func (e *FormError) Error() string { return e.Field + ": " + e.Detail }

// A MediaTypeError reports a body whose media type or content coding the route does not accept.
type MediaTypeError struct{ Header, Got, Want string }

func (e *MediaTypeError) Error() string {
	return fmt.Sprintf("%s %q is not accepted; send %s", e.Header, domain.Shorten(e.Got), e.Want)
}
