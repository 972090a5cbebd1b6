 org nowhere
 end nowhere
