package subscribe

// DeliveryOf is for tests.
var DeliveryOf = deliveryOf
