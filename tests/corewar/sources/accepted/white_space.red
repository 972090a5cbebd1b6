	dat	1	,	2
 dat1
