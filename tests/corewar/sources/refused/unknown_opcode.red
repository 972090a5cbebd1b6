 xch 1
