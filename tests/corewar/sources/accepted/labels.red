; labels with and without colon, several per line, alone on a line
one
two three: dat one, three
four:five dat two, four
      jmp five, six
six   end one
