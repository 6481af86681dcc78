package work

// list is a doubly linked list, like container/list without interfaces.
type list[T any] struct {
	first, last *element[T]
	len         int
}

type element[T any] struct {
	value          T
	previous, next *element[T]
}

func (l *list[T]) push(value T) *element[T] {
	e := &element[T]{value: value, previous: l.last}
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.len++
	return e
}

func (l *list[T]) remove(e *element[T]) {
	if e.previous == nil {
		l.first = e.next
	} else {
		e.previous.next = e.next
	}
	if e.next == nil {
		l.last = e.previous
	} else {
		e.next.previous = e.previous
	}
	l.len--
}
